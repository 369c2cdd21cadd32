"""clients/node: its own tests with each Redis library, and the code of its pages."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import urllib.request

import pytest

from tests.harness.cli import programs
from tests.harness.optional import need
from tests.harness.server import ROOT, wait_for

CLIENT = ROOT / "clients/node"
# The folder into which scripts/setup.sh puts the packages. The client is built there, so that the checkout stays as it
# is.
FOLDER = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "node-client"
PAGES = [CLIENT / "README.md", ROOT / "docs/drivers/node.md", ROOT / "docs/drivers/nestjs.md", ROOT / "docs/drivers/bullmq.md"]
SOURCES = ["src", "test", "package.json", "tsconfig.json", "README.md", "LICENSE"]

pytestmark = pytest.mark.slow


def run(*words, seconds=170, **env) -> str:
    """Runs a program to its end, which must be without an error. Returns what it printed."""
    env = {**os.environ, **env}
    done = subprocess.run(words, cwd=FOLDER, env=env, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def built():
    """The client, built from its sources."""
    version = subprocess.run(["node", "-p", "process.versions.node"], capture_output=True, text=True).stdout if shutil.which("node") else "0.0"
    need(tuple(map(int, version.split(".")[:2])) >= (20, 19), "Node 20.19 or newer")
    lock = FOLDER / "package-lock.json"
    need(lock.exists() and lock.read_bytes() == (CLIENT / "package-lock.json").read_bytes(), "what clients/node/package-lock.json names")
    for name in [*SOURCES, "pages", "examples"]:
        shutil.rmtree(FOLDER / name, ignore_errors=True)
    (FOLDER / "examples").mkdir()
    for name in SOURCES:
        (shutil.copytree if (CLIENT / name).is_dir() else shutil.copy)(CLIENT / name, FOLDER / name)
    # dq-server without its programs.
    shutil.rmtree(FOLDER / "node_modules/dq-server", ignore_errors=True)
    shutil.copytree(ROOT / "packaging/server/npm", FOLDER / "node_modules/dq-server")
    # It is built again when anything of it has changed.
    files = [lock, *(CLIENT / name for name in ("package.json", "tsconfig.json")), *sorted((CLIENT / "src").rglob("*.*"))]
    version = hashlib.sha256(b"".join(file.read_bytes() for file in files) + version.encode()).hexdigest()
    sign = FOLDER / "dist.version"
    if not (FOLDER / "dist").exists() or not sign.exists() or sign.read_text() != version:
        run("npm", "run", "build")
        sign.write_text(version)


@pytest.mark.parametrize(
    "file, tests",
    [("conformance", 341), ("queue", 106), ("worker", 81), ("odd", 30), ("stopping", 38), ("family", 30), ("nestjs", 30), ("bullmq", 30), ("bullmq-ahead", 6), ("bullmq-effects", 1), ("bullmq-awake", 1), ("bullmq-loss", 24), ("bullmq-odd", 23), ("bullmq-stopping", 13), ("bullmq-cluster", 4), ("bullmq-secrets", 9), ("connection", 1), ("nestjs-bullmq", 2), ("package", 5), ("durable", 31), ("secrets", 19), ("opentelemetry", 1)],
)
def test_the_package(server, cluster, replica_pair, file, tests):
    env = {
        "DQ_TEST_URL": f"redis://127.0.0.1:{server.port}",
        "DQ_TEST_CLUSTER": ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes),
        "DQ_TEST_REPLICATED": f"redis://127.0.0.1:{replica_pair.primary.port}",
        "DQ_CONFORMANCE": f"{(ROOT / 'tests/conformance').as_uri()}/",
    }
    said = run("node", "--test", "--test-reporter=tap", "--test-timeout=160000", f"test/{file}.test.mjs", **env)
    count = {name: int(n) for name, n in re.findall(r"^# (pass|fail|skipped) (\d+)$", said, re.MULTILINE)}
    assert count["pass"] >= tests and (count["fail"], count["skipped"]) == (0, 0), said[-3000:]


@pytest.fixture
def pages(server):
    """The examples of the pages, compiled, with the address of the server. Returns the folder."""
    folder = FOLDER / "pages"
    if folder.exists():
        return folder
    folder.mkdir()
    address = f"redis://127.0.0.1:{server.port}"
    for page in PAGES:
        for number, code in enumerate(re.findall(r"^```ts\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)):
            code = code.replace("redis://localhost", address).replace("new Redis()", f"new Redis('{address}')")
            (folder / f"{page.stem}-{number}.mts").write_text(code)
    # The decorators of NestJS take handlers of any shape only without strictFunctionTypes, as its own projects are.
    flags = "--ignoreConfig --strict --strictFunctionTypes false --skipLibCheck --module nodenext --target es2022 --types node"
    run("npx", "tsc", *flags.split(), "--experimentalDecorators", "--emitDecoratorMetadata", *(str(path) for path in sorted(folder.glob("*.mts"))))
    return folder


def test_the_code_of_the_pages(pages):
    """Every example compiles, and those that end on their own run. `test_the_test_of_a_page` runs the tests."""
    ends = re.compile(r"^(redis\.disconnect|client\.destroy| +await one\.close)\(\);$", re.MULTILINE)
    ending = [path for path in sorted(pages.glob("*.mjs")) if ends.search(path.read_text()) and "startServer" not in path.read_text()]
    assert len(ending) == 9
    for path in ending:
        run("node", str(path), seconds=30)


def test_the_example_of_the_page_about_tests():
    """docs/testing.md, with dq-server from the sources and the program dq of this machine."""
    [code] = re.findall(r"^```js\n(.*?)^```$", (ROOT / "docs/testing.md").read_text(), re.MULTILINE | re.DOTALL)
    (FOLDER / "testing").mkdir(exist_ok=True)
    (FOLDER / "testing/testing.test.mjs").write_text(code)
    assert "\n# pass 1\n" in output_of(FOLDER / "testing/testing.test.mjs")


@pytest.mark.parametrize("page", ["node", "nestjs", "bullmq"])
def test_the_test_of_a_page(pages, page):
    [path] = [path for path in pages.glob(f"{page}-*.mjs") if "startServer" in path.read_text()]
    assert "\n# pass 1\n" in output_of(path)


def output_of(path) -> str:
    """Runs a file of node:test, whose server is one of the programs under test."""
    return run("node", "--test", "--test-reporter=tap", "--test-timeout=60000", str(path), **programs())


def test_the_service_of_the_page_starts_works_and_stops(pages, r3):
    """The service of nestjs.md, which runs until SIGTERM."""
    words = ["node", str(pages / "nestjs-0.mjs")]
    process = subprocess.Popen(words, cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        r3.execute_command("DQ.SEND", "orders", '{"id":7}', "TYPE", "order.created", "RETAIN", 60_000, "ID", "o7")
        assert r3.execute_command("DQ.WAIT", "orders", "o7", 15_000) == [b"finished", None]
        r3.execute_command("DQ.SEND", "orders", "[1,2]", "TYPE", "price", "RETAIN", 60_000, "ID", "p")
        assert r3.execute_command("DQ.WAIT", "orders", "p", 15_000) == [b"finished", b'{"values":[3]}']
        process.terminate()
        said, _ = process.communicate(timeout=15)
    finally:
        process.kill()
        process.wait()
    assert re.search(r"^7 1 \d+ false$", said, re.MULTILINE), said


def test_the_example_keeps_its_promises(server):
    """examples/drivers/node_shop.mjs, beside which the package is installed."""
    shutil.copy(ROOT / "examples/drivers/node_shop.mjs", FOLDER / "examples")
    said = run("node", str(FOLDER / "examples/node_shop.mjs"), seconds=90, DQ_URL=f"redis://127.0.0.1:{server.port}")
    assert said.count("ok  ") == 7, said


def test_the_shop_on_bullmq_with_its_dashboard(server):
    """examples/bullmq: its jobs run, and bull-board shows them."""
    shutil.copy(ROOT / "examples/bullmq/board.mjs", FOLDER / "examples/board.mjs")
    env = {**os.environ, "REDIS_URL": f"redis://127.0.0.1:{server.port}", "PORT": "0"}
    shop = subprocess.Popen(["node", "examples/board.mjs"], cwd=FOLDER, env=env, stdout=subprocess.PIPE, text=True)
    try:
        board = shop.stdout.readline().strip()
        assert board.endswith("/jobs"), board
        for order in ("7/ann@shop.example", "8/nobody"):
            urllib.request.urlopen(urllib.request.Request(f"{board.removesuffix('/jobs')}/order/{order}", method="POST")).read()
        # One order is shipped, and one waits for a mail that has failed. The newsletter is planned.
        wait_for(lambda: counts_of(board, "orders", "completed", "waiting-children") == [1, 1])
        wait_for(lambda: counts_of(board, "mails", "completed", "failed", "delayed") == [1, 1, 1])
        shown = urllib.request.urlopen(f"{board}/api/queues?activeQueue=mails&status=failed&page=1&jobsPerPage=10").read().decode()
        assert "nobody is no address" in shown
    finally:
        shop.terminate()
        assert shop.wait(20) == 0
        shop.stdout.close()


def counts_of(board: str, queue: str, *states: str) -> list[int]:
    """The states of a queue that bull-board shows."""
    shown = json.load(urllib.request.urlopen(f"{board}/api/queues?activeQueue={queue}&status=latest&page=1&jobsPerPage=1"))
    [counts] = [one["counts"] for one in shown["queues"] if one["name"] == queue]
    return [counts[state] for state in states]
