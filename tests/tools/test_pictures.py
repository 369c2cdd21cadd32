"""The pictures of the documentation are drawn from a real terminal, with their text as text."""

import re
from xml.etree import ElementTree

import pytest

from scripts.pictures import CELL_WIDTH, MARGIN, PICTURES, runs, svg
from tests.harness.cli import Screen
from tests.harness.optional import needs
from tests.harness.server import ROOT, wait_for

pytest_plugins = ["tests.harness.cli_fixtures"]


def shown(picture):
    """The lines of text of a picture, that contain text."""
    lines = {}
    for text in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text"):
        column = round((float(text.get("x")) - MARGIN) / CELL_WIDTH)
        line = lines.setdefault(float(text.get("y")), "")
        lines[float(text.get("y"))] = line.ljust(column) + text.text
    return [lines[y] for y in sorted(lines)]


def test_styles_continue_over_the_ends_of_lines():
    bold, both = frozenset({"bold"}), frozenset({"bold", "reversed"})
    found = runs(["a\x1b[1mb", "c\x1b[39m\x1b[7md\x1b[0;2me"])
    assert found == [(0, 0, "a", frozenset()), (0, 1, "b", bold), (1, 0, "c", bold), (1, 1, "d", both), (1, 2, "e", {"dim"})]


def test_a_style_it_cannot_draw_is_an_error():
    with pytest.raises(KeyError):
        svg(["\x1b[5mblinking"], 80, "x")


def test_colours_are_drawn_until_the_usual_one():
    found = runs(["a\x1b[38;5;1mb\x1b[39mc"])
    assert found == [(0, 0, "a", set()), (0, 1, "b", {"#ff7b72"}), (0, 2, "c", set())]
    assert 'fill="#ff7b72">b<' in svg(["a\x1b[38;5;1mb\x1b[39mc"], 80, "x")


def test_any_text_is_kept():
    assert shown(svg(["a <b> & 'c'", "", "  ▁▂ 键"], 20, "<&>")) == ["a <b> & 'c'", "  ▁▂ 键"]


@pytest.mark.timeout(600)
@needs("tmux")
def test_a_picture_shows_the_text_of_the_screen(dq, r3):
    for n in range(3):
        r3.execute_command("DQ.SEND", f"queue-{n}", "x", "GROUP", "g", "ID", "i")
    with Screen(dq, "top", "--interval", "60s") as screen:
        screen.sees(">queue-0", " queue-2", "── queue-0 ──")

        def same():
            lines = [line.rstrip() for line in screen.lines() if line.strip()]
            return shown(svg(screen.styled_lines(), 80, "x")) == lines

        # The whole picture, after it was drawn completely.
        wait_for(same, 20, "a picture of what is on the screen")


@pytest.mark.parametrize(
    "name, words",
    [
        ("top.svg", ["dq top", "LATENESS", "PAUSED", "held: user-4"]),
        ("top-queue.svg", ["redelivered", "lateness p50", "billing-1"]),
        ("top-groups.svg", ["WHY", "backoff", "order-4-created"]),
    ],
)
def test_every_picture_shows_its_subject_and_is_used(name, words):
    lines = shown((PICTURES / name).read_text())
    assert all(any(word in line for line in lines) for word in words), lines
    assert max(map(len, lines)) <= 80
    used = [page.name for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")] if re.search(rf"\]\([\w/]*{name}\)", page.read_text())]
    assert used, f"no page shows {name}"


@pytest.mark.parametrize("name", ["web.png", "web-history.png", "web-queue.png", "web-errors.png", "web-message.png"])
def test_every_picture_of_a_page_is_one_and_is_used(name):
    head = (PICTURES / name).read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n" and int.from_bytes(head[16:20], "big") == 1180
    assert f"pictures/{name})" in (ROOT / "docs/web.md").read_text()
