"""`dq exporter` as a running process, and its output."""

import re
import subprocess
import urllib.request

from tests.harness.cli import build

SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Exporter:
    """A running exporter of a server, for `with`."""

    def __init__(self, server, *options, url=None):
        url = url or f"redis://127.0.0.1:{server.port}"
        words = [build(), "exporter", "--url", url, "--listen", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("dq exporter listens on http://"), line
        self.port = int(line.rpartition(":")[2])

    def page(self, path: str = "/metrics") -> str:
        return fetch(f"http://127.0.0.1:{self.port}{path}")

    def metrics(self) -> dict:
        """(name, ((label, value), ...)) -> number."""
        return parse(self.page())

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(10)
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def fetch(url: str) -> str:
    """The body of a page."""
    with urllib.request.urlopen(url, timeout=60) as reply:
        return reply.read().decode()


def parse(page: str) -> dict:
    """Metrics in Prometheus' text format: (name, ((label, value), ...)) -> number."""
    found = {}
    for line in page.splitlines():
        if not line.startswith("#"):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            at = (name, tuple(sorted(LABEL.findall(labels or ""))))
            assert at not in found, f"{at} comes twice"
            found[at] = float(value)
    return found


def busy(client) -> None:
    """Makes the queue `work` and the family `parts`, in which every metric has something to say."""
    do = client.execute_command
    do("DQ.CREATE", "work", "RETRIES", 0, "ONDEAD", "BLOCK", "MAXLEN", 100)
    do("DQ.SEND", "work", "late", "DELAY", 60000)
    for n in range(3):
        do("DQ.SEND", "work", "x", "ID", f"g{n}", "GROUP", "held")
    [(_, receipt, *_)] = do("DQ.FETCH", "work", "CONSUMER", "w1")
    do("DQ.NACK", "work", receipt, "FATAL")
    do("DQ.SEND", "work", "x")
    do("DQ.SEND", "work", "x")
    [(_, receipt, *_)] = do("DQ.FETCH", "work")
    do("DQ.ACK", "work", receipt)
    do("DQ.SEND", "parts:{0}", "x")
    do("DQ.NFETCH", "parts")
    do("DQ.SEND", "work", "row", "BATCH", "rows")
    do("DQ.SEND", "work", "report", "AFTER", "rows")
