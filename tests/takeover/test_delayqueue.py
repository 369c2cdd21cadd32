"""HDT3213/delayqueue: what the library itself has sent is in dq, and back where it was after an undo."""

import shutil
import subprocess
import time

import pytest

from tests.harness.optional import need
from tests.takeover.conftest import digest
from tests.takeover.peers import HERE, packages

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.slow

GET = "go mod init old && go get github.com/hdt3213/delayqueue@v1.1.2 github.com/gomodule/redigo@v1.8.3"


def build(folder):
    """Builds the program of the library in a folder."""
    need(shutil.which("go"), "Go")
    shutil.copytree(packages("delayqueue-1.1.2", ["sh", "-c"], GET), folder, dirs_exist_ok=True)
    shutil.copy(HERE / "delayqueue/main.go", folder)
    subprocess.run(["go", "build", "-mod=mod", "-o", "old", "."], cwd=folder, check=True)
    return folder / "old"


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return build(tmp_path_factory.mktemp("old"))


@pytest.mark.parametrize("options, own", [((), ()), (("prefix=x", "tags"), ("--prefix", "x", "--hash-tag"))])
def test_messages_keep_their_times_and_retries(move, old, options, own):
    subprocess.run([old, str(move.old.port), "fill", *options], check=True, timeout=30)
    time.sleep(4.5)
    before = digest(move.old.client())
    queue = ["delayqueue", "--queue", "*", "--ledger", "l", *own]
    lost = subprocess.run(move.command(*queue, "--json"), cwd=move.folder, capture_output=True, timeout=30)
    assert lost.returncode == 3 and b'"unack"' not in lost.stdout
    # The library may have given up the other one by now, or not: then it stays.
    subprocess.run(move.command(*queue, "--running", "take"), cwd=move.folder, timeout=30)
    client = move.new.client(protocol=3)
    key = "{x:orders}" if options else "dp:orders"
    [held] = client.execute_command("DQ.LIST", key, "ready")[1]
    later = client.execute_command("DQ.LIST", key, "delayed", "COUNT", 20)[1]
    assert held[b"payload"] == b"held" and held[b"retries-left"] == 4
    assert [(int(m[b"payload"]), m[b"retries-left"]) for m in later] == [(n, n) for n in range(10)]
    assert {m[b"due-at"] % 1000 for m in later} == {0}
    move.run(None, "--undo", "l")
    assert digest(move.old.client()) == before
