"""The names in backticks of pages and comments exist: files, targets of the Makefile, and names of the sources."""

import re
import shutil
import subprocess

import pytest

from tests.harness.server import ROOT

CODE = (".rs", ".py", ".sh", ".php", ".ts", ".mjs", ".js", ".go", ".c", ".toml", ".lua", ".html", ".css")
DATA = (".yml", ".yaml", ".json", ".conf", ".service", ".default", ".rules")
NAME_OF_FILE = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/?)`")
# Files of an application of a user and of other projects, and the tag of the Go module.
FOREIGN_FILES = re.compile(r"config/|test_redis\.py$|tests/common\.py$|worker\.py$|tasks\.py$|^clients/go/vVERSION$")
# A name with a part of several words, or with a path: `wait_list`, `ReadyLine`, `Queue::apply`. Other words in backticks
# may be anything.
NAME = re.compile(r"`([A-Za-z_]\w*(?:(?:::|\.)[A-Za-z_]\w*)*)(?:\(\))?`")
OF_SOURCES = re.compile(r"\w_\w|::|^[A-Z][a-z]+\w*$")
# Names of the servers' sources, which the sources here know as text only.
FOREIGN_NAMES = re.compile(r"^(Valkey|Redis)?Module|^Cluster[A-Z]|_test\.go$")
WORD = re.compile(r"[A-Za-z_]\w*")
COMMENT = re.compile(r"(?:^|\s)(?://|#(?!\[)|\*|--)\s?")
# Pages about the sources. Other pages name what is not ours.
INSIDE = ["CONTRIBUTING.md", "docs/architecture.md", "docs/dependencies.md", "docs/reliability.md", "tests/README.md"]


@pytest.fixture(scope="module")
def texts() -> dict:
    """The text of each file of this repository, by its name, with / between its folders."""
    git = shutil.which("git")
    tracked = subprocess.run([git or "false", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode != 0:
        pytest.skip("an archive of the sources is no repository")
    names = [name for name in tracked.stdout.split() if (ROOT / name).exists()]
    written = (*CODE, *DATA, ".md", "Makefile")
    is_text = [name.endswith(written) and "/golden/v" not in name for name in names]
    return {name: (ROOT / name).read_text() if is_read else "" for name, is_read in zip(names, is_text, strict=True)}


def split(text) -> tuple:
    """A source without its comments, and its comments."""
    source, comments = [], []
    for line in text.splitlines():
        found = COMMENT.search(line)
        at = found.start() if found else len(line)
        source.append(line[:at])
        comments.append(line[at:])
    return "\n".join(source), "\n".join(comments)


def test_files_exist(texts):
    """Wholly or as the end of their path, in pages and in comments."""
    parts = [name.split("/") for name in texts]
    known = {"/".join(words[a:b]) for words in parts for b in range(1, len(words) + 1) for a in range(b)}
    folders = tuple({f"{words[0]}/" for words in parts if len(words) > 1})
    missing = []
    for name, text in texts.items():
        if name.endswith(DATA):
            continue
        for named in NAME_OF_FILE.findall(text):
            is_ours = named.endswith((*CODE, ".md")) or named.startswith(folders)
            if is_ours and not FOREIGN_FILES.search(named) and named.rstrip("/") not in known:
                missing.append(f"{name}: {named}")
    assert not missing


def test_targets_of_the_makefile_exist(texts):
    targets = set(re.findall(r"^([a-z-]+):", texts["Makefile"], re.MULTILINE))
    named = {(name, target) for name, text in texts.items() for target in re.findall(r"`make ([a-z-]+)", text)}
    missing = [f"{name}: make {target}" for name, target in named if target not in targets]
    assert len(named) > 100 and not missing


def test_names_of_the_sources_exist(texts):
    """In comments, and in the pages about the sources."""
    known, read = set(), {name: texts[name] for name in INSIDE}
    for name, text in texts.items():
        if not name.endswith(".md"):
            source, read[name] = split(text)
            known.update(WORD.findall(source))
    missing, seen = [], 0
    for name, text in read.items():
        for named in NAME.findall(text):
            parts = re.split(r"::|\.", named)
            if OF_SOURCES.search(named) and not FOREIGN_NAMES.search(named):
                seen += 1
                if not known.issuperset(parts):
                    missing.append(f"{name}: {named}")
    assert seen > 300 and not missing
