"""The exporter with a real server, and the dashboard and alerts compared with its metrics.

How Prometheus itself uses them is tested in test_prometheus.py.
"""

import json
import re
import subprocess

import pytest
import yaml

from tests.harness.cli import build
from tests.harness.exporter import Exporter, busy
from tests.harness.server import ROOT, free_port

MONITORING = ROOT / "monitoring"
# In an expression, a name in front of one of these is a metric. No metric begins with another word of PromQL.
METRIC = re.compile(r"\bdq_\w+")
SELECTED = re.compile(r"\b(dq_\w+)\{([^}]*)\}")


@pytest.fixture
def exporter(server):
    made = []

    def make(*options, url=None):
        made.append(Exporter(server, *options, url=url))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def client(server):
    return server.client()


def test_the_metrics_are_the_figures_of_the_server_its_queues_and_families(exporter, client, server):
    busy(client)
    metrics = exporter("--family", "parts").metrics()

    def of(name, **labels):
        return metrics[name, tuple(sorted({"db": "0", "queue": "work", **labels}.items()))]

    states = {state: of("dq_queue_messages", state=state) for state in ("delayed", "ready", "blocked", "held", "dead")}
    assert states == {"delayed": 1, "ready": 2, "blocked": 2, "held": 1, "dead": 1}
    assert of("dq_queue_sent_total") == 8
    assert of("dq_queue_batches") == 1
    assert of("dq_queue_deaths_total") == 1
    assert of("dq_queue_held_groups") == 1
    assert of("dq_queue_max_messages") == 100
    assert of("dq_queue_paused") == 0
    assert of("dq_queue_lateness_seconds", quantile="0.99") < 1
    assert metrics["dq_up", ()] == 1
    node = {"node": f"127.0.0.1:{server.port}"}

    def of_server(name, **labels):
        return metrics[name, tuple(sorted({**node, **labels}.items()))]

    info = client.info("dq")
    build = {name: str(info[f"dq_{name}"]) for name in ("version", "revision")}
    assert of_server("dq_build_info", **build) == 1
    assert of_server("dq_queues") == 2
    assert of_server("dq_messages", state="dead") == 1
    assert of_server("dq_calls_total", verb="send") >= 8
    assert of_server("dq_family_queues", db="0", family="parts") == 1
    assert of_server("dq_family_messages", db="0", family="parts", state="running") == 1
    # The queues of a family that is added up have no figures of their own.
    assert {dict(labels)["queue"] for metric, labels in metrics if metric == "dq_queue_paused"} == {"work"}


def test_what_cannot_go_where_it_should_is_a_metric(exporter, client):
    do = client.execute_command
    do("DQ.CREATE", "work", "RETRIES", 0, "DEADTO", "lost", "retries", "EVENTS", "events")
    for key in ("lost", None):
        if key is None:
            client.delete("lost")
            client.set("lost", "x")
            client.delete("events")
            client.set("events", "x")
        do("DQ.SEND", "work", "x")
        do("DQ.NACK", "work", do("DQ.FETCH", "work")[0][1])
        metrics = exporter().metrics()
        labels = (("db", "0"), ("queue", "work"))
        names = ("dq_queue_deadto_moved_total", "dq_queue_deadto_stuck", "dq_queue_events_stopped")
        assert [metrics[name, labels] for name in names] == ([1, 0, 0] if key else [1, 1, 1])


def test_what_is_held_and_limited_is_a_metric(exporter, client):
    do = client.execute_command
    do("DQ.CREATE", "work", "RETRIES", 0, "CLOCK", "MANUAL", 1000)
    do("DQ.SEND", "work", "x", "ID", "p", "CHILDREN", 1), do("DQ.SEND", "work", "x", "PARENT", "work", "p")
    do("DQ.SEND", "work", "x", "BATCH", "b"), do("DQ.SEND", "work", "x", "AFTER", "b")
    for _, receipt, *_ in do("DQ.FETCH", "work", "COUNT", 9):
        do("DQ.NACK", "work", receipt)
    do("DQ.TICK", "work", "ADVANCE", 5000)
    do("DQ.SEND", "work", "x", "PARK"), do("DQ.SEND", "work", "x", "PARK", "FOR", 60_000)
    do("DQ.LIMIT", "work", "api", "RATE", 9, "PER", 60_000, "WEIGHT"), do("DQ.LIMIT", "work", "user-*", "CONCURRENCY", 1)
    do("DQ.SEND", "work", "x", "LIMITS", 2, "api", "user-7", "COST", 9)
    do("DQ.LIMIT", "work", "api", "RATE", 8, "PER", 60_000, "WEIGHT")
    do("DQ.SEND", "fine", "x", "CHILDREN", 1)
    metrics = exporter().metrics()
    of = {}
    for (name, labels), value in metrics.items():
        labels = dict(labels)
        if name.startswith(("dq_queue_held_m", "dq_queue_stuck", "dq_queue_limit")) and labels["queue"] == "work":
            of[name, labels.get("reason", labels.get("limit"))] = value
    assert of == {
        ("dq_queue_held_messages", "children"): 1,
        ("dq_queue_held_messages", "signal"): 2,
        ("dq_queue_held_messages", "batch"): 1,
        ("dq_queue_stuck_seconds", "dead-child"): 5,
        ("dq_queue_stuck_seconds", "dead-batch"): 5,
        ("dq_queue_stuck_seconds", "parked"): 0,
        ("dq_queue_limit_running", "api"): 0,
        ("dq_queue_limit_waiting_groups", "api"): 1,
        ("dq_queue_limit_never", "api"): 1,
        **{(f"dq_queue_limit_{figure}", "user-*"): 0 for figure in ("running", "waiting_groups", "never")},
    }
    assert not [name for name, _ in exporter("--sums").metrics() if name.startswith("dq_queue_")]


def test_queues_are_found_in_every_database_and_may_have_any_name(exporter, client, server):
    name = b'odd "name"\\\n\xff'
    client.execute_command("DQ.SEND", name, "x")
    server.client(db=3).execute_command("DQ.SEND", "third", "x")
    client.set("not a queue", "x")
    metrics = exporter("--db", "0", "--db", "3").metrics()
    queues = {dict(labels)["queue"] for metric, labels in metrics if metric == "dq_queue_paused"}
    assert queues == {r"odd \"name\"\\\\\n\\xff", "third"}


def test_names_that_look_alike_are_series_of_their_own(exporter, client):
    """A byte that is no UTF-8, and the text that stands for it."""
    names = [b"n\xff", rb"n\xff", rb"n\\xff"]
    for name in names:
        client.execute_command("DQ.SEND", name, "x")
    # A series that is named twice is one series, too.
    metrics = exporter("--db", "0", "--db", "0", "--family", "f", "--family", "f").metrics()
    queues = {dict(labels)["queue"] for metric, labels in metrics if metric == "dq_queue_paused"}
    assert queues == {r"n\\xff", r"n\\\\xff", r"n\\\\\\\\xff"}


def test_the_password_can_be_in_a_file(exporter, client, server, tmp_path):
    client.execute_command(*"ACL SETUSER watcher on >s@/#cret".split(), *documented_rights()[0][1:])
    secret = tmp_path / "password"
    secret.write_text("s@/#cret\n")
    secret.chmod(0o600)
    try:
        url = f"redis://watcher@127.0.0.1:{server.port}"
        assert exporter("--auth-file", str(secret), url=url).metrics()["dq_up", ()] == 1
        secret.chmod(0o602)
        refused = subprocess.run([build(), "exporter", "--auth-file", secret], capture_output=True, text=True, timeout=60)
        assert refused.returncode == 1 and "everybody may change this file" in refused.stderr
    finally:
        client.execute_command("ACL", "DELUSER", "watcher")


def test_a_named_queue_that_does_not_exist_has_no_metrics(exporter, client):
    client.execute_command("DQ.SEND", "here", "x")
    client.set("text", "x")
    metrics = exporter("here", "nowhere", "text").metrics()
    assert [dict(labels)["queue"] for metric, labels in metrics if metric == "dq_queue_paused"] == ["here"]


def documented_rights() -> list:
    """The rights that docs/monitoring.md gives the exporter: on a server, and in a cluster."""
    page = (ROOT / "docs" / "monitoring.md").read_text()
    return [rights.split() for rights in re.findall(r"^ACL SETUSER watcher (.*)", page, re.MULTILINE)]


def test_the_primaries_of_a_cluster_are_added_up(cluster, exporter):
    partitions = [f"parts:{{{n}}}" for n in range(30)]
    for key in [*partitions, "alone"]:
        cluster.owner(key).client().execute_command("DQ.SEND", key, "x")
    one_node = f"redis://watcher:secret@127.0.0.1:{cluster.nodes[0].port}"
    _, in_a_cluster = documented_rights()
    for node in cluster.nodes:
        node.client().execute_command("ACL", "SETUSER", "watcher", *in_a_cluster)
    try:
        metrics = exporter("--family", "parts", url=one_node).metrics()
    finally:
        for node in cluster.nodes:
            node.client().execute_command("ACL", "DELUSER", "watcher")
    of_family = {
        dict(labels)["node"]: number
        for (name, labels), number in metrics.items()
        if name == "dq_family_messages" and dict(labels)["state"] == "ready"
    }
    assert len(of_family) == len(cluster.nodes)
    assert sum(of_family.values()) == len(partitions)
    assert sum(number for (name, _), number in metrics.items() if name == "dq_queues") == len(partitions) + 1
    assert [dict(labels)["queue"] for name, labels in metrics if name == "dq_queue_paused"] == ["alone"]


def test_the_documented_rights_suffice(exporter, client, server):
    client.execute_command("DQ.SEND", "work", "x", "GROUP", "g")
    client.execute_command("ACL", "SETUSER", "watcher", *documented_rights()[0])
    try:
        metrics = exporter("--family", "f", url=f"redis://watcher:secret@127.0.0.1:{server.port}").metrics()
        assert metrics["dq_up", ()] == 1
    finally:
        client.execute_command("ACL", "DELUSER", "watcher")


def test_a_server_that_is_down_is_a_metric_and_no_error(exporter, server):
    nobody = f"redis://127.0.0.1:{free_port()}"
    metrics = exporter(url=nobody).metrics()
    assert metrics["dq_up", ()] == 0
    assert not any(name.startswith("dq_queue") for name, _ in metrics)


# ---- dashboard, alerts, documentation


def expressions() -> list:
    """Every expression of the dashboard and of the alerts."""
    board = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    found = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    found += [variable["definition"] for variable in board["templating"]["list"] if "definition" in variable]
    return found + [rule["expr"] for group in rules for rule in group["rules"]]


@pytest.fixture
def exported(exporter, client) -> dict:
    """Metric -> the names of its labels, as exported for a queue that has everything."""
    busy(client)
    client.execute_command("DQ.LIMIT", "flows", "api", "CONCURRENCY", 1)
    client.execute_command("DQ.SEND", "flows", "x"), client.execute_command("DQ.SEND", "flows", "x", "PARK")
    return {name: {label for label, _ in labels} for name, labels in exporter("--family", "parts").metrics()}


def test_dashboard_and_alerts_use_only_exported_metrics(exported):
    asked = expressions()
    assert len(asked) > 30
    for expression in asked:
        names = METRIC.findall(expression)
        assert names, expression
        for name in names:
            assert name in exported, f"{name}, in {expression}"
        for name, labels in SELECTED.findall(expression):
            for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", labels):
                # The label instance comes from Prometheus itself.
                assert label in exported[name] | {"instance"}, f"{name} has no {label}, in {expression}"


def test_exactly_the_exported_metrics_are_documented(exported):
    page = (ROOT / "docs" / "monitoring.md").read_text()
    assert set(re.findall(r"^\| `(dq_\w+)`", page, re.MULTILINE)) == set(exported)


def test_every_alert_says_what_to_do():
    page = (ROOT / "docs" / "monitoring.md").read_text()
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules] == re.findall(r"^\| (Dq\w+) \|", page, re.MULTILINE)
    for rule in rules:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]


def test_panels_do_not_overlap():
    board = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    cells = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        mine = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not mine & cells, panel["title"]
        assert at["x"] + at["w"] <= 24
        cells |= mine
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_the_script_for_redis_exporter_gives_the_figures(client):
    busy(client)
    script = (MONITORING / "redis_exporter.lua").read_text()
    flat = client.execute_command("EVAL", script, 0)
    figures = {name.decode(): int(value) for name, value in zip(flat[::2], flat[1::2])}
    assert (figures["dq_queues"], figures["dq_dead"], figures["dq_ready"]) == (2, 1, 2)
    assert not {"dq_version", "dq_revision"} & set(figures)
