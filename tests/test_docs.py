"""The documentation held to the server: every example marked redis-cli is run as printed, every link leads somewhere,
and the Chinese pages show the commands of the English ones."""

import re
import subprocess

import pytest

from tests.harness.server import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
# A Chinese page and the English one that it follows.
TRANSLATED = [("README.md", "README.zh-CN.md"), ("docs/quickstart.md", "docs/quickstart.zh-CN.md")]
FENCE = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PLACEHOLDER = re.compile(r"<([a-z][a-z0-9]*)>")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def fences(page, language):
    """The (position, text) of every fenced block of a language."""
    return [(found.start(), found[2]) for found in FENCE.finditer(page) if found[1] == language]


def examples():
    """Every example, named by its page and the heading above it."""
    for path in PAGES:
        page = path.read_text()
        for number, (position, block) in enumerate(fences(page, "redis-cli")):
            heading = HEADING.findall(page, 0, position)[-1].split(",")[0]
            yield pytest.param(block, id=f"{path.name}-{number}-{heading}")


def steps(block):
    """The (command, expected reply lines) pairs of an example."""
    found = []
    for line in block.splitlines():
        if line.startswith("> "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def pattern(lines, known):
    """A regular expression for a printed reply; `known` are the values of placeholders seen before."""
    parts = []
    here = set()
    for line in lines:
        if line == "...":
            parts.append(r"(?:.*\n)*?")
            continue
        text = ""
        for i, part in enumerate(PLACEHOLDER.split(line)):
            if i % 2 == 0:
                text += re.escape(part)
            elif part in known:
                text += re.escape(known[part])
            elif part in here:
                text += f"(?P={part})"
            else:
                here.add(part)
                text += f"(?P<{part}>.+)"
        parts.append(text + r"\n")
    return re.compile("".join(parts))


@pytest.mark.parametrize("block", list(examples()))
def test_example(server, block):
    known = {}
    for command, reply in steps(block):
        command = PLACEHOLDER.sub(lambda m: known[m.group(1)], command)
        done = subprocess.run(
            ["redis-cli", "-3", "--no-raw", "-p", str(server.port)],
            input=command + "\n",
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        match = pattern(reply, known).fullmatch(done.stdout.rstrip("\n") + "\n")
        assert match, f"> {command}\n{done.stdout}\nbut the page says\n" + "\n".join(reply)
        known.update(match.groupdict())


def test_every_verb_has_an_example():
    page = (ROOT / "docs" / "commands.md").read_text()
    shown = set(re.findall(r"^> (DQ\.[A-Z]+)", page, re.MULTILINE))
    named = set(re.findall(r"\bDQ\.[A-Z]+\b", page)) - {"DQ.OP"}
    assert named == shown


@pytest.mark.parametrize("page", ["quickstart.md", "quickstart.zh-CN.md", "concepts.md", "cookbook.md", "coming-from.md"])
def test_pages_that_teach_have_examples_that_run(page):
    assert fences((ROOT / "docs" / page).read_text(), "redis-cli")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_verbs_that_are_named_exist(server, path):
    with server.wire() as wire:
        commands = wire.call("COMMAND", "LIST", "FILTERBY", "MODULE", "dq")
    known = {name.decode().upper() for name in commands}
    # DQ.X and the like stand for any verb.
    named = set(re.findall(r"\bDQ\.[A-Z]{2,}\b", path.read_text()))
    assert named <= known, named - known


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_python_in_the_documentation_compiles(path):
    for _, block in fences(path.read_text(), "python"):
        compile(block, str(path), "exec")


def test_the_map_of_the_code_is_the_tree():
    rows = re.findall(r"^\| `([\w/.]+)`", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    missing = [row for row in rows if not (ROOT / row).exists()]
    assert not missing, missing
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode == 0:
        folders = {f"{path.split('/')[0]}/" for path in tracked.stdout.split() if "/" in path and path[0] != "."}
        folders |= {f"{path.rsplit('/', 1)[0]}/" for path in tracked.stdout.split() if re.match(r"src/\w+/", path)}
        unnamed = {f for f in folders if not any(f.startswith(row) or row.startswith(f) for row in rows)}
        assert not unnamed, unnamed


# ---- links


def anchors(path):
    """The anchors of a page, as GitHub makes them of its headings."""
    headings = HEADING.findall(re.sub(FENCE, "", path.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for link in LINK.findall(re.sub(FENCE, "", path.read_text())):
        if re.match(r"\w+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), f"{link}: no such file"
        if anchor:
            assert anchor in anchors(target), f"{link}: no such heading"


# ---- translations


def commands(page):
    """What a reader types, in order: the lines of every fenced block without their comments and what answers show."""
    typed = []
    for language, block in FENCE.findall(page):
        for line in block.splitlines():
            line = re.sub(r"\s+# .*", "", line)
            if language == "redis-cli" or re.search(r"\bDQ\.[A-Z]|^(make|redis-server|redis-cli)\b", line):
                typed.append(line.strip())
    return typed


@pytest.mark.parametrize("english, chinese", TRANSLATED, ids=lambda name: name)
def test_translations_show_the_same_commands(english, chinese):
    assert commands((ROOT / chinese).read_text()) == commands((ROOT / english).read_text())


@pytest.mark.parametrize("english, chinese", TRANSLATED, ids=lambda name: name)
def test_translations_have_the_same_parts(english, chinese):
    def levels(name):
        page = re.sub(FENCE, "", (ROOT / name).read_text())
        return [len(mark) for mark in re.findall(r"^(#+) ", page, re.MULTILINE)]

    assert levels(chinese) == levels(english)


def figures(page):
    """What each row says of a table whose second column is ours: ours, the peer's, the result, what it must be, PASS."""
    found, ours = [], False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        if len(cells) != 6:
            ours = False
        elif cells[1] == "dq":
            ours = True
        elif ours and cells[2].strip("-"):
            found.append(tuple(cells[1:6]))
    return found


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_measured_figures_are_those_of_the_benchmark(name):
    measured = figures((ROOT / "docs/benchmarks.md").read_text())
    told = figures((ROOT / name).read_text())
    assert len(told) == 10
    assert set(told) <= set(measured)
