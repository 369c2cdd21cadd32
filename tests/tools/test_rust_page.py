"""The program of docs/drivers/rust.md, built with the crate that the page names, and run."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness.optional import need
from tests.harness.server import ROOT, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PAGE = ROOT / "docs/drivers/rust.md"


@pytest.fixture(scope="module")
def mails(tmp_path_factory):
    """The program. Its crates come from the registry, or from the cache of cargo where there is no network."""
    need(shutil.which("cargo"), "cargo")
    folder = tmp_path_factory.mktemp("rust-page")
    for text in re.findall(r"```(?:toml|rust)\n(.*?)```", PAGE.read_text(), re.S):
        name = text.partition("\n")[0].split()[1]
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    # The same versions as those of the program dq, so that nothing new is downloaded where it was built.
    shutil.copy(ROOT / "cli/Cargo.lock", folder)
    done = subprocess.run(["cargo", "build"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    return folder / "target/debug/mails"


def test_the_producer_and_the_worker_of_the_page(mails, make_server, tmp_path):
    server = make_server()
    url, client = f"redis://127.0.0.1:{server.port}", server.client()
    client.execute_command("DQ.CREATE", "mails", "RETAIN", 2**50, "RETRIES", 1, "BACKOFF", "FIXED", 10)

    def send(id, payload):
        return subprocess.run([mails, url, "send", id, payload], check=True, capture_output=True, text=True).stdout.strip()

    def ended():
        return tuple(client.execute_command("DQ.LEN", "mails", state) for state in ("finished", "dead"))

    log = tmp_path / "log"
    with open(log, "w") as out:
        worker = subprocess.Popen([mails, url, "work"], stdout=out, stderr=subprocess.STDOUT, env=os.environ)
    try:
        assert (send("a", "to ann"), send("a", "to ann")) == ("sent", "known already")
        send("b", "")
        wait_for(lambda: ended() == (1, 1), 60, "both messages to end")
        # It goes on after its connection was cut.
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        send("c", "to cy")
        wait_for(lambda: ended() == (2, 1), 60, "the message after the cut")
    finally:
        worker.kill()
        worker.wait()
    lines = Path(log).read_text().splitlines()
    assert [line for line in lines if "attempt" in line] == ["a attempt 1: to ann", "c attempt 1: to cy"]
