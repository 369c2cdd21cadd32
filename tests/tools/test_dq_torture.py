"""`dq torture`: a short run finds nothing, a server that lies about its syncs is found, and nothing is left behind."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.harness.server import engine, module_path, wait_for

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def torture(program, tmp_path):
    """Starts `dq torture` in a directory that must be empty at the end."""

    def start(*words, server=engine(), **options):
        # Each server must be found by what its parent was told.
        files = ["--engine", shutil.which(server) or server, "--module", str(module_path())]
        command = [program, "torture", *files, "--dir", str(tmp_path), *map(str, words)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    return start


def report(process, code) -> dict:
    out, err = process.communicate()
    assert process.returncode == code, out + err
    return json.loads(out)


def servers_below(folder) -> list:
    """The processes whose working directory is in the folder, as that of each server of a run is."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if Path(os.readlink(process / "cwd")).is_relative_to(folder):
                found.append(process.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("fault", ["kill", "power-always", "power-everysec", "failover", "disk-full"])
def test_a_short_run_finds_nothing_and_leaves_nothing(torture, tmp_path, fault):
    found = report(torture("--minutes", 0.05, "--fault", fault, "--seed", 3, "--json"), code=0)
    if found["left-out"]:
        assert fault.startswith(("power", "disk")), found
        pytest.skip(found["left-out"][0])
    [row] = found["faults"]
    assert row["fault"] == fault and row["injected"] > 0 and row["sends"] > 5 and row["violations"] == 0
    assert found["violations"] == []
    if fault == "power-always":
        assert found["syncs"] > 100
    assert list(tmp_path.iterdir()) == [] and servers_below(tmp_path) == []


def test_a_server_that_does_not_sync_is_found(torture, tmp_path):
    liar = tmp_path / "liar"
    liar.write_text(f"#!/bin/sh\nsed 's/^appendfsync always/appendfsync no/' >{tmp_path}/conf\nexec {engine()} {tmp_path}/conf\n")
    liar.chmod(0o755)
    process = torture("--minutes", 0.05, "--fault", "power-always", "--json", server=str(liar))
    out, err = process.communicate()
    found = json.loads(out)
    if found["left-out"]:
        pytest.skip(found["left-out"][0])
    assert process.returncode == 1 and "promises were broken" in err
    lost = [broken for broken in found["violations"] if "was confirmed and is gone" in broken["what"]]
    # If the making of the queue is lost, finished messages after the last failure have no record, either.
    told = ["\n".join(broken["history"]) for broken in lost]
    assert any("SEND" in history and "the power fails" in history for history in told)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_leaves_nothing(torture, tmp_path, number):
    process = torture("--minutes", 5, "--fault", "failover")
    wait_for(lambda: len(servers_below(tmp_path)) == 2, 60, "both servers")
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == 0, out + err
    assert "nothing was judged" in out and "a signal has ended it" in out
    assert list(tmp_path.iterdir()) == [] and servers_below(tmp_path) == []


def test_its_servers_end_with_it(torture, tmp_path):
    process = torture("--minutes", 5, "--fault", "kill")
    wait_for(lambda: servers_below(tmp_path), 60, "the server")
    process.kill()
    process.communicate()
    wait_for(lambda: not servers_below(tmp_path), 60, "the end of the server")


def test_keep_keeps_the_data_and_the_history(torture, tmp_path):
    process = torture("--minutes", 0.05, "--fault", "kill", "--keep")
    out, err = process.communicate()
    assert process.returncode == 0, out + err
    [folder] = tmp_path.iterdir()
    assert f"kept        {folder}" in out
    history = (folder / "0-kill" / "history").read_text()
    assert "SEND p0-1 " in history and "kill -9" in history and " is finished" in history
    assert list((folder / "0-kill" / "one" / "appendonlydir").glob("*.aof"))
