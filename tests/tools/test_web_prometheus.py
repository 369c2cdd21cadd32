"""`dq web --prometheus`: the history comes from a Prometheus that asks the exporter."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.harness.cli import Cli
from tests.harness.optional import need
from tests.harness.server import free_port, wait_for

pytest_plugins = ["tests.harness.web_fixtures"]
pytestmark = pytest.mark.timeout(300)

STEP = 300


class FakePrometheus:
    """Answers each query with fixed figures: `sent` counts 7 in each step, of all queues 70. Remembers what was
    asked.
    """

    def __init__(self):
        self.asked = []
        self.status, self.body = 200, None
        ours = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                path, _, query = self.path.partition("?")
                fields = dict(urllib.parse.parse_qsl(query))
                ours.asked.append((path, fields))
                body = (ours.body if ours.body is not None else ours.answer(fields)).encode()
                self.send_response(ours.status)
                self.send_header("Content-Type", "application/json")
                # The answer is sent in chunks, as Prometheus sends long ones.
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for part in (body[:100], body[100:]):
                    if part:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.write(b"0\r\n\r\n")

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        # A client that does not read a long answer to its end is no error.
        self.server.handle_error = lambda *_: None
        Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, fields) -> str:
        sent = "7" if 'queue="' in fields["query"] else "70"
        times = range(int(fields["start"]), int(fields["end"]) + 1, int(fields["step"]))
        series = {"sent": sent, "late": "90"}
        result = [{"metric": {"figure": name}, "values": [[at, value] for at in times]} for name, value in series.items()]
        return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


@pytest.fixture
def fake():
    prometheus = FakePrometheus()
    yield prometheus
    prometheus.server.shutdown()
    prometheus.server.server_close()


def test_the_history_comes_from_prometheus(start, r3, fake):
    r3.execute_command("DQ.SEND", 'a "b"\\', "x")
    web = start("--prometheus", fake.url + "/base/", "--prometheus-labels", '{job="dq",db="0"}').visitor()
    words = web.sees("", 'a "b"', span="24h").words()
    assert "compare queues from Prometheus" in words and "of it are known" not in words
    assert "sent in 5m max 70" in words and "overdue at most max 1m30s" in words
    words = web.get("queue", queue='a "b"\\', span="24h").words()
    assert "sent in 5m max 7 " in words
    day = json.loads(web.get("api/history", queue='a "b"\\', span="24h").text)
    assert day["source"] == "from Prometheus" and len(day["steps"]) == 288 and day["steps"][0]["sent"] == 7
    assert 300 <= time.time() - day["steps"][-1]["at"] / 1000 < 600, "the last one that is whole"
    paths, queries = {path for path, _ in fake.asked}, [fields["query"] for _, fields in fake.asked]
    assert paths == {"/base/api/v1/query_range"}
    assert 'dq_queue_messages{job="dq",db="0",state=~' in queries[0]
    assert 'job="dq",db="0",queue="a \\"b\\"\\\\\\\\"' in queries[-1], "as the exporter names it, in PromQL"
    assert all(int(fields["start"]) % STEP == 0 and fields["step"] == "300" for _, fields in fake.asked)
    # An answer is used for a minute, however often a page is renewed.
    for _ in range(5):
        web.get("", span="24h"), web.get("queue", queue='a "b"\\', span="24h")
    assert len(fake.asked) == 2
    # Each span has its steps.
    web.get("", span="7d"), web.get("")
    assert [fields["step"] for _, fields in fake.asked[2:]] == ["3600", "60"]


@pytest.mark.parametrize(
    "status, body, why",
    [
        (422, '{"status":"error","errorType":"x","error":"too <many> samples"}', "too <many> samples"),
        (502, "<html>", "it answers 502"),
        (200, '{"status":"success","data":{"resultType":"matrix","result":[]}}', "it has no figures of dq"),
        (200, "x" * 2_000_000, "length limit"),
    ],
)
def test_without_an_answer_the_charts_are_those_of_dq_web(start, r3, fake, status, body, why):
    r3.execute_command("DQ.SEND", "q", "x")
    fake.status, fake.body = status, body
    words = start("--prometheus", fake.url).visitor().sees("", "q").words()
    assert "from here, for Prometheus gives none: " in words and why in words


def test_a_prometheus_that_is_not_there_holds_nothing_up(start, r3):
    r3.execute_command("DQ.SEND", "q", "x")
    web = start("--prometheus", f"http://127.0.0.1:{free_port()}").visitor()
    assert "Connection refused" in web.sees("", "q", "Prometheus gives none").words()


def test_a_prometheus_that_hangs_is_waited_for_once(start, r3):
    for name in ("a", "b"):
        r3.execute_command("DQ.SEND", name, "x")
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        web = start("--prometheus", f"http://127.0.0.1:{hanging.getsockname()[1]}").visitor()
        web.sees("", "a", "b", "Prometheus gives none: no answer in 4 s")
        # There is one connection for all pages.
        assert "no answer in 4 s" in web.get("queue", queue="a").words() + web.get("queue", queue="b").words()
        hanging.settimeout(1)
        hanging.accept()
        with pytest.raises(TimeoutError):
            hanging.accept()


def test_wrong_addresses_are_refused(program):
    dq = Cli(program, "redis://127.0.0.1:1")
    for wrong in ("p:9090", "https://p", "http://ann:pa55@p:9090"):
        refused = dq("web", "--prometheus", wrong, code=2).stderr
        assert "--prometheus" in refused
    dq("web", "--prometheus-labels", 'job="dq"', code=2)


# ---- a real one


def tool(name):
    path = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    need(path, name)
    return path


@contextmanager
def prometheus(there: Path, metrics: str):
    """Starts a Prometheus that has these samples of the past. Returns its URL."""
    (there / "past.txt").write_text(metrics)
    data = there / "data"
    told = subprocess.run(
        [tool("promtool"), "tsdb", "create-blocks-from", "openmetrics", there / "past.txt", data], capture_output=True, text=True
    )
    assert told.returncode == 0, told
    (there / "prometheus.yml").write_text("global: {}\n")
    at = f"127.0.0.1:{free_port()}"
    words = [f"--config.file={there / 'prometheus.yml'}", f"--storage.tsdb.path={data}", f"--web.listen-address={at}"]
    with open(there / "log", "w") as log:
        process = subprocess.Popen([tool("prometheus"), *words], stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_for(lambda: "ready to receive web requests" in (there / "log").read_text(), 30, "Prometheus")
        yield f"http://{at}"
    finally:
        process.terminate()
        process.wait(20)


def test_a_real_prometheus_understands_what_it_is_asked(start, r3, tmp_path):
    """A queue of which 600 messages were sent an hour, for eight hours, and of another server twice as many."""
    now = int(time.time())
    lines = ["# TYPE dq_queue_sent counter", "# TYPE dq_queue_messages gauge"]
    samples = {"dq_queue_sent": [], "dq_queue_messages": []}
    for instance, times in (("ours", 1), ("other", 2)):
        for minute in range(8 * 60 + 1):
            at = now - 8 * 3600 + minute * 60
            labels = f'instance="{instance}",db="0",queue="q"'
            samples["dq_queue_sent"].append(f"dq_queue_sent_total{{{labels}}} {1000 + 10 * minute * times} {at}")
            for state, count in (("ready", 40), ("held", 2), ("dead", 9000)):
                samples["dq_queue_messages"].append(f'dq_queue_messages{{{labels},state="{state}"}} {count * times} {at}')
    text = "\n".join(
        [lines[0], *samples["dq_queue_sent"], lines[1], *samples["dq_queue_messages"], "# EOF"]
    )
    r3.execute_command("DQ.SEND", "q", "x")
    with prometheus(tmp_path, text + "\n") as url:
        web = start("--prometheus", url, "--prometheus-labels", 'instance="ours"').visitor()
        words = web.sees("", "from Prometheus", span="24h").words()
        assert re.search(r"(7h\d+m|8h|8h5m) of it are known. from Prometheus", words), words
        assert "sent in 5m max 50" in words and "waiting max 42" in words
        assert "sent in 1m max 10" in web.get("").words() and "sent in 1h max 600" in web.get("", span="7d").words()
        assert "waiting max 42" in web.get("queue", queue="q").words()
        both = start("--prometheus", url).visitor()
        assert "sent in 5m max 150" in both.sees("", "from Prometheus", span="24h").words()
        wrong = start("--prometheus", url, "--prometheus-labels", "instance=ours").visitor()
        assert "Prometheus gives none: " in wrong.sees("", "parse error").words()
