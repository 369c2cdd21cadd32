"""The documentation is true: every example marked redis-cli is run as printed, the pages for the first hour are followed as
pasted, and every link leads somewhere. Names in the text: test_names_in_text.py. Chinese pages: test_translations.py."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.harness.server import ROOT, wait_for

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# The lines that a reader of the first hour pastes into redis-cli and into files.
PASTED = ["README.md", "README.zh-CN.md", "docs/quickstart.md", "docs/quickstart.zh-CN.md"]
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


@pytest.fixture
def server(server):
    """A server with the module's own defaults: a reader has no others."""
    client = server.client()
    ours = client.config_get("dq.backoff")["dq.backoff"]
    client.config_set("dq.backoff", "EXP 1000 MAXBACKOFF 3600000 JITTER 20")
    yield server
    server.client().config_set("dq.backoff", ours)


def redis_cli(server, lines):
    """The output of redis-cli when these lines are pasted into it."""
    done = subprocess.run(
        ["redis-cli", "-3", "--no-raw", "-p", str(server.port)],
        input=lines,
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    return done.stdout.rstrip("\n") + "\n"


@pytest.mark.parametrize("block", list(examples()))
def test_an_example_gives_the_printed_output(server, block):
    known = {}
    for command, reply in steps(block):
        command = PLACEHOLDER.sub(lambda m: known[m.group(1)], command)
        printed = redis_cli(server, command + "\n")
        match = pattern(reply, known).fullmatch(printed)
        assert match, f"> {command}\n{printed}\nbut the page says\n" + "\n".join(reply)
        known.update(match.groupdict())


# ---- what is pasted


@pytest.mark.parametrize("name", PASTED)
def test_a_page_works_as_pasted(server, name):
    """Each block marked redis goes into redis-cli as a whole, and prints the block marked reply behind it. The reader
    types only what stands for a receipt that an earlier block has shown."""
    known = {}
    blocks = FENCE.findall((ROOT / name).read_text())
    pasted = [(lines, blocks[n + 1]) for n, (language, lines) in enumerate(blocks) if language == "redis"]
    assert pasted
    for lines, (language, reply) in pasted:
        assert language == "reply", lines
        lines = PLACEHOLDER.sub(lambda m: known[m.group(1)], lines)
        # The delay that gives a reader time; redis-cli prints how long a command took from half a second on.
        printed = redis_cli(server, lines.replace("DELAY 10000", "DELAY 700"))
        match = pattern(reply.splitlines(), known).fullmatch(printed)
        assert match, f"{lines}\n{printed}\nbut the page says\n{reply}"
        known.update(match.groupdict())


@pytest.mark.parametrize("name", PASTED)
def test_commands_to_paste_have_no_comments_and_no_prompts(name):
    for language, block in FENCE.findall((ROOT / name).read_text()):
        if language in ("redis", "reply"):
            continue
        # redis-cli knows no comments: they would be words of the command.
        assert not re.search(r"^(> )?DQ\.", block, re.MULTILINE), block


@pytest.mark.parametrize("name", PASTED)
def test_the_worker_of_a_page_works_as_pasted(server, r3, tmp_path, name):
    [(_, code)] = fences((ROOT / name).read_text(), "python")
    assert "redis.Redis(socket_timeout=10)" in code
    file = tmp_path / "worker.py"
    file.write_text(code.replace("redis.Redis(", f"redis.Redis(port={server.port}, "))
    # The pauses between the attempts are shorter than a reader's.
    r3.config_set("dq.backoff", "EXP 100 MAXBACKOFF 1000 JITTER 20")
    for payload in (b"ann", b"bob", b"\xff"):
        r3.execute_command("DQ.SEND", "mails", payload)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    log = tmp_path / "log"
    with log.open("w") as output:
        worker = subprocess.Popen([sys.executable, file], stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        # Two messages are handled; the third, which is no text, makes the handler fail until it is dead.
        wait_for(lambda: r3.execute_command("DQ.LEN", "mails") == 0, 20, "the worker")
    finally:
        worker.kill()
        worker.wait()
    said = log.read_text()
    assert "handling ann" in said and "handling bob" in said
    assert "NameError" not in said
    # The error can be read where the worker runs, and in the message.
    assert said.count("UnicodeDecodeError") == 4
    [dead] = r3.execute_command("DQ.LIST", "mails", "dead", "IDS")[1]
    assert b"UnicodeDecodeError" in r3.execute_command("DQ.GET", "mails", dead)[b"error"]


def test_every_verb_has_an_example():
    page = (ROOT / "docs" / "commands.md").read_text()
    shown = set(re.findall(r"^> (DQ\.[A-Z]+)", page, re.MULTILINE))
    named = set(re.findall(r"\bDQ\.[A-Z]+\b", page)) - {"DQ.OP", "DQ.OPS"}
    assert named == shown


@pytest.mark.parametrize("page", ["concepts.md", "cookbook.md", "coming-from.md"])
def test_teaching_pages_have_executed_examples(page):
    assert fences((ROOT / "docs" / page).read_text(), "redis-cli")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_verb_that_is_named_exists(server, path):
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
    rows = re.findall(r"^\| `([\w/.]+)`", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
    missing = [row for row in rows if not (ROOT / row).exists()]
    assert not missing, missing
    # An archive of the sources is no repository.
    git = shutil.which("git")
    tracked = subprocess.run([git or "false", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode == 0:
        folders = {f"{path.split('/')[0]}/" for path in tracked.stdout.split() if "/" in path and path[0] != "."}
        folders |= {f"{path.rsplit('/', 1)[0]}/" for path in tracked.stdout.split() if re.match(r"(crates/queue/)?src/\w+/", path)}
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


# ---- the README files


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= 1_600


def first_cells(page):
    return set(re.findall(r"^\| ([^|]*[^|-]) \|", page, re.MULTILINE))


def test_the_index_of_the_drivers_has_the_words_of_the_readme():
    table = (ROOT / "README.md").read_text().split("| framework |")[1].split("\n\n")[0]
    told = first_cells(table)
    assert len(told) >= 10
    assert told <= first_cells((ROOT / "docs/drivers/README.md").read_text())


def figures(page):
    """The rows of a table whose second column is ours: ours, the peer's, the result, the target, PASS."""
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
    assert len(told) == 5
    assert set(told) <= set(measured)
