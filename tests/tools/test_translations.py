"""The Chinese pages have the same content as the English ones: the same sections, commands, code, pictures and figures,
in order.

The names in docs/clients.zh-CN.md are compared by test_client_names.py.
"""

import re

import pytest

from tests.harness.server import ROOT

# An English page and the Chinese one that follows it.
TRANSLATED = [
    ("README.md", "README.zh-CN.md"),
    ("docs/quickstart.md", "docs/quickstart.zh-CN.md"),
    ("docs/sqs.md", "docs/sqs.zh-CN.md"),
    ("docs/takeover.md", "docs/takeover.zh-CN.md"),
    ("packaging/start-deb.md", "packaging/start-deb.zh-CN.md"),
    ("packaging/start-tar.md", "packaging/start-tar.zh-CN.md"),
]
FENCE = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"(^|\s+)#.*")
# From two digits on; small numbers may be words.
FIGURE = re.compile(r"(?<![\w.])\d[\d,.]*\d(?!\w)")


@pytest.fixture(params=TRANSLATED, ids=lambda pair: pair[0])
def pages(request):
    """The texts of both pages."""
    return [(ROOT / name).read_text() for name in request.param]


def prose(page):
    """The page without code and without the targets of links."""
    return re.sub(r"\]\([^)]*\)", "]", FENCE.sub("", page))


def code(page):
    """The language and the lines of each fenced block, without comments and without Chinese text."""
    blocks = []
    for language, block in FENCE.findall(page):
        lines = [COMMENT.sub("", line).rstrip() for line in block.splitlines()]
        blocks.append((language, [line for line in lines if line and line.isascii()]))
    return blocks


def test_they_have_the_same_sections(pages):
    english, chinese = (re.findall(r"^(#+) ", FENCE.sub("", page), re.MULTILINE) for page in pages)
    assert chinese == english


def test_they_show_the_same_code(pages):
    english, chinese = map(code, pages)
    for ours, theirs in zip(english, chinese, strict=True):
        assert theirs == ours


def test_they_show_the_same_pictures(pages):
    english, chinese = (re.findall(r"!\[[^]]*\]\(([^)]+)\)", page) for page in pages)
    assert chinese == english


def test_they_tell_the_same_figures(pages):
    english, chinese = (sorted(FIGURE.findall(prose(page))) for page in pages)
    assert chinese == english


def test_every_chinese_page_is_compared():
    """The pages without an English one are about Chinese frameworks, and the page of names."""
    alone = {"docs/clients.zh-CN.md", "docs/drivers/hyperf-thinkphp.zh-CN.md"}
    found = {str(page.relative_to(ROOT)) for top in (".", "docs", "docs/drivers", "packaging") for page in (ROOT / top).glob("*.zh-CN.md")}
    assert found == {chinese for _, chinese in TRANSLATED} | alone
