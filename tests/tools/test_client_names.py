"""The table of names in docs/clients.md: each name exists in its client, one notion has one name, and no method of a
queue is left out."""

import re

import pytest

from tests.harness.server import ROOT

LANGUAGES = ["Python", "Node", "Go", "PHP"]
FOLDERS = {"Python": "python/src/dqueue", "Node": "node/src", "Go": "go", "PHP": "php/src"}
SUFFIXES = {"Python": "*.py", "Node": "*.ts", "Go": "*.go", "PHP": "*.php"}
# The way in which a language declares a name: a function or method, a type, a field or parameter.
DECLARED = {
    "Python": r"\b(def|class) {0}\b|^\s+{0}: ",
    "Node": r"^\s*(export |abstract |readonly |async |get |static )*(class |interface )?{0}\??[<({{: ]|\b{0} = \d",
    "Go": r"^func (\(\w+ \*?\w+\) )?{0}\(|^type {0} |^\t{0}\b[^(]",
    "PHP": r"\bfunction {0}\(|\bclass {0}\b|\b(readonly|private) [?\w|\\]+ \${0}\b|^\s+\?int \${0}\b|^\s+int \${0}\b",
}
# The files and the pattern of all methods of a queue.
METHODS = {
    "Python": (["verbs.py", "control_verbs.py"], r"^    def (?!_)(\w+)\("),
    "Node": (["queue.ts", "inspection.ts"], r"^  (?:async )?(?!if\b|for\b|constructor\b|protected\b)(\w+)(?:<[^(]*>)?\("),
    "Go": (["queue.go", "consume.go", "change.go", "inspect.go"], r"^func \(q \*Queue\) ([A-Z]\w+)\("),
    "PHP": (["Queue.php", "Inspection.php", "Schedules.php"], r"^    public function (?!__)(\w+)\("),
}
# These methods stand for no single command: they run any command, build on `send`, or belong to the language.
OTHERS = {"Node": {"do", "add", "close"}, "Go": {"Do", "Key", "SendJSON"}, "PHP": {"do", "later"}}


def rows(page="clients.md"):
    """The rows of the section, each as the names by language."""
    section = (ROOT / "docs" / page).read_text()
    section = re.split(r"\n## (?:Names|名字)\n", section)[1].split("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if "`" in line and line.startswith("|"):
            yield {language: re.findall(r"`(\w+)`", cell) for language, cell in zip(LANGUAGES, cells[-4:])}


ROWS = list(rows())


def files(language, names=None):
    folder = ROOT / "clients" / FOLDERS[language]
    return [path for path in sorted(folder.rglob(SUFFIXES[language])) if names is None or path.name in names]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_has_the_names_of_the_table(language):
    source = "\n".join(path.read_text() for path in files(language) if not path.name.endswith("_test.go"))
    names = {name for row in ROWS for name in row[language]}
    assert len(names) > 50
    missing = [name for name in sorted(names) if not re.search(DECLARED[language].format(name), source, re.MULTILINE)]
    assert missing == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_table_has_all_methods_of_a_queue(language):
    named, pattern = METHODS[language]
    paths = [path for path in files(language, named) if "asyncio" not in path.parts]
    assert len(paths) == len(named)
    found = {name for path in paths for name in re.findall(pattern, path.read_text(), re.MULTILINE)}
    listed = {name for row in ROWS for name in row[language]}
    assert len(found) > 35
    assert found - listed - OTHERS.get(language, set()) == set()


def test_the_chinese_page_has_the_same_names():
    assert list(rows("clients.zh-CN.md")) == ROWS


def plain(name):
    """A name without the case of its language. Go's methods that set a field begin with Set."""
    return name.replace("_", "").lower().removeprefix("set")


def test_a_notion_has_one_name():
    for row in ROWS:
        assert len({tuple(map(plain, names)) for names in row.values() if names}) == 1, row
