"""The files of monitoring/ in a real Prometheus: its tools accept the rules, each alert fires when it should, and every panel
has data.

Prometheus and its exporter for Redis are Debian's; `make setup-optional` fetches them into .venv/bin.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from tests.harness.exporter import Exporter, busy, fetch, parse
from tests.harness.optional import need
from tests.harness.server import ROOT, free_port, wait_for

MONITORING = ROOT / "monitoring"
ALERTS = MONITORING / "alerts.yml"
ALERT_TESTS = MONITORING / "alerts_test.yml"

pytestmark = pytest.mark.timeout(120)


def tool(name):
    """The path of a program of Debian's packages; skips the test without it."""
    path = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    need(path, name)
    return path


def promtool(*words):
    """Runs promtool, and returns its output and its success."""
    done = subprocess.run([tool("promtool"), *map(str, words)], capture_output=True, text=True)
    return done.stdout + done.stderr, done.returncode == 0


# ---- rules


def test_promtool_accepts_the_alert_rules():
    told, content = promtool("check", "rules", ALERTS)
    assert content, told


def test_each_alert_fires_when_it_should_and_not_otherwise():
    told, content = promtool("test", "rules", ALERT_TESTS)
    assert content, told


def test_every_alert_is_tested():
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    cases = [case for test in yaml.safe_load(ALERT_TESTS.read_text())["tests"] for case in test["alert_rule_test"]]
    firing = {case["alertname"] for case in cases if case.get("exp_alerts")}
    silent = {case["alertname"] for case in cases if not case.get("exp_alerts")}
    assert firing == silent == {rule["alert"] for rule in rules}


# ---- dashboard


class Prometheus:
    """A running Prometheus with the configuration of monitoring/, at a higher rate, that scrapes one exporter."""

    def __init__(self, exporter, where):
        conf = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
        [job] = conf["scrape_configs"]
        job["scrape_interval"] = "1s"
        job["static_configs"][0]["targets"] = [f"127.0.0.1:{exporter.port}"]
        conf["rule_files"] = [str(ALERTS)]
        conf["global"] = {"evaluation_interval": "1s"}
        (where / "prometheus.yml").write_text(yaml.safe_dump(conf))
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = (where / "log").open("w+")
        words = [f"--config.file={where}/prometheus.yml", f"--storage.tsdb.path={where}/data"]
        words.append(f"--web.listen-address={self.url.removeprefix('http://')}")
        self.process = subprocess.Popen([tool("prometheus"), *words], stdout=self.log, stderr=subprocess.STDOUT)

    def ask(self, path):
        """The answer of the HTTP interface, or None if there is none yet."""
        try:
            return json.loads(fetch(f"{self.url}/api/v1/{path}"))["data"]
        except OSError:
            assert self.process.poll() is None, Path(self.log.name).read_text()[-2000:]
            return None

    def query(self, expression):
        """The (labels, value) pairs of an expression now."""
        found = self.ask(f"query?query={quote(expression)}")
        return [(one["metric"], float(one["value"][1])) for one in found["result"]] if found else []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()


@pytest.fixture
def prometheus(server, tmp_path):
    """Prometheus, which has seen a server with a busy queue and a paused one a few times."""
    busy(server.client())
    server.client().execute_command("DQ.SEND", "halted", "x")
    server.client().execute_command("DQ.PAUSE", "halted")
    with Exporter(server, "--family", "parts") as exporter, Prometheus(exporter, tmp_path) as prometheus:
        seen = 'count_over_time(dq_queue_sent_total{queue="work"}[1m])'
        wait_for(lambda: [value for _, value in prometheus.query(seen) if value >= 3], 60, "samples")
        yield prometheus


def filled(expression):
    """An expression of the dashboard in the form that Grafana sends with all values selected."""
    return re.sub(r"\$(instance|db|queue)\b", ".*", expression).replace("$__rate_interval", "1m")


def test_every_panel_and_variable_has_data_and_the_alerts_work(prometheus):
    board = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    asked = {panel["title"]: [one["expr"] for one in panel.get("targets", ())] for panel in board["panels"]}
    variables = [one for one in board["templating"]["list"] if "definition" in one]
    for variable in variables:
        series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()
        asked[variable["name"]] = [f"count by ({label}) ({series})"]
    assert sum(map(len, asked.values())) > 30
    for title, expressions in asked.items():
        for expression in expressions:
            assert "$" not in filled(expression)
            assert prometheus.query(filled(expression)), f"{title}: {expression}"
    [(_, held)] = prometheus.query(filled(asked["Held groups"][0]))
    assert held == 1

    def alerts():
        groups = prometheus.ask("rules")["groups"]
        return {rule["name"]: rule for group in groups for rule in group["rules"]}

    wait_for(lambda: all(rule["health"] == "ok" for rule in alerts().values()), 20, "healthy rules")
    states = {name: rule["state"] for name, rule in alerts().items()}
    # Pending: true, but not yet for as long as the rule demands.
    assert (states["DqPaused"], states["DqBlockedGroups"], states["DqDown"]) == ("pending", "pending", "inactive")


# ---- Debian's exporter for Redis


@contextmanager
def redis_exporter(server):
    """The metrics of Debian's exporter with our script; the URL of its page."""
    at = f"127.0.0.1:{free_port()}"
    words = ["-redis.addr", f"redis://127.0.0.1:{server.port}", "-web.listen-address", at]
    script = str(MONITORING / "redis_exporter.lua")
    process = subprocess.Popen(
        [tool("prometheus-redis-exporter"), *words, "-script", script],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://{at}/metrics"
    finally:
        process.terminate()
        process.wait(10)


def test_redis_exporter_carries_the_figures_of_the_server(server):
    busy(server.client())
    with redis_exporter(server) as url:

        def page():
            try:
                return fetch(url)
            except OSError:
                return ""

        def up():
            text = page()
            return text if "redis_up 1" in text else None

        metrics = parse(wait_for(up, 20, "the exporter"))
    figures = {dict(labels).get("key"): value for (name, labels), value in metrics.items() if name == "redis_script_values"}
    assert (figures["dq_queues"], figures["dq_dead"], figures["dq_ready"]) == (2, 1, 2)
    assert metrics["redis_commands_total", (("cmd", "dq.fetch"),)] >= 2
    # Without the script the exporter does not export the module's part of INFO.
    assert not any(name.startswith(("dq_", "redis_dq_")) for name, _ in metrics)
