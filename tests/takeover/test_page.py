"""The afternoon of docs/takeover.md, pasted, with the peers' own packages: nothing is left at the old server."""

import re
import signal
import subprocess
import time

import pytest

from tests.harness.server import ROOT, wait_for
from tests.takeover import (
    test_bullmq,
    test_celery,
    test_delayqueue,
    test_dramatiq,
    test_laravel,
)
from tests.takeover.peers import BULL, Bullmq, bullmq

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs/takeover.md").read_text()


def fill_celery(port, log):
    """With the Celery that the driver's tests have."""
    test_celery.run(ROOT, port, "fill", 3600, log=log)


def fill_delayqueue(port, log):
    subprocess.run([test_delayqueue.build(log.parent / "go"), str(port), "later"], check=True, timeout=60)


FILL = {
    "BullMQ": (lambda port, log: Bullmq(bullmq(test_bullmq.VERSIONS[1])).run(port, "fill"), 0, 48),
    "Bull": (lambda port, log: Bullmq(bullmq(BULL)).run(port, "fill"), 0, 48),
    "Celery": (fill_celery, 0, 29),
    "Dramatiq": (lambda port, log: test_dramatiq.run(port, "fill", 3600, log=log), 0, 26),
    "Laravel": (lambda port, log: (test_laravel.need_php("Laravel"), test_laravel.run(port, "fill", 3600, log=log)), 4, 16),
    "HDT3213/delayqueue": (fill_delayqueue, 0, 10),
}


@pytest.mark.parametrize("peer", FILL)
def test_the_afternoon_as_pasted(move, peer, tmp_path):
    fill, db, count = FILL[peer]
    fill(move.old.port, tmp_path / "log")
    block = re.search(rf"## {peer}\n.*?```sh\n(.*?)```", PAGE, re.DOTALL)[1]
    client = move.new.client(db=db)

    def there():
        return sum(int(client.execute_command("DQ.LEN", key)) for key in client.keys("*") if client.type(key) == b"dqueue-rs")

    for line in block.splitlines():
        line = line.replace("old:6379", f"127.0.0.1:{move.old.port}/{db}").replace("new:6379", f"127.0.0.1:{move.new.port}/{db}")
        words = [str(move.program), *line.split()[1:]]
        if "--follow" in words:
            process = subprocess.Popen(words, cwd=tmp_path)
            wait_for(lambda: there() >= count, timeout=20)
            time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        else:
            subprocess.run(words, cwd=tmp_path, check=True, timeout=60)
    assert there() >= count
