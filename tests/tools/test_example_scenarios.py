"""The examples, run as their readers run them but smaller: each checks its own promises and fails by its exit code.

The tests also look for the trouble that an example is about in its output, because a run without it proves nothing.
"""

import ast
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.harness.optional import lacking
from tests.harness.server import ROOT, engine, module_path

EXAMPLES = ROOT / "examples"


def run(*command, seconds=50, code=0, env=None) -> str:
    """Runs an example to its end; its output, if it ended with that exit code."""
    done = subprocess.run(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=seconds,
        text=True,
        env=env,
    )
    assert done.returncode == code, f"exit code {done.returncode}:\n{done.stdout[-6000:]}"
    return done.stdout


def python(script, *options, **kwargs) -> str:
    return run(sys.executable, EXAMPLES / script, *options, **kwargs)


def with_package(script, *options, **kwargs) -> str:
    """Runs an example that uses the Python package, from its sources."""
    if sys.version_info < (3, 11):
        pytest.skip("the package needs Python 3.11 or newer")
    return python(script, *options, env={**os.environ, "PYTHONPATH": str(ROOT / "clients/python/src")}, **kwargs)


def figure(output, label) -> int:
    """The number in the line that begins with the label."""
    found = re.search(rf"^\s*{re.escape(label)}\D*(\d+)", output, re.MULTILINE)
    assert found, f"no line {label!r} in:\n{output}"
    return int(found[1])


def url(server) -> str:
    return f"redis://127.0.0.1:{server.port}"


@pytest.mark.parametrize("script", sorted(EXAMPLES.rglob("*.py")), ids=lambda script: script.name)
def test_examples_are_written_for_the_python_they_name(script):
    assert "Python 3.9 or newer and redis-py 5 or newer" in (EXAMPLES / "README.md").read_text()
    ast.parse(script.read_text(), feature_version=(3, 9))


@pytest.mark.slow
def test_the_example_close_unpaid_orders_proves_its_promises(server):
    output = python(
        "close_unpaid_orders/close_unpaid_orders.py",
        *("--url", url(server), "--orders", 400, "--seconds", 2, "--unpaid-ms", 1200, "--seed", 3),
    )
    assert figure(output, "orders placed") == 400
    assert figure(output, "paid") + figure(output, "closed") == 400
    assert figure(output, "failed closings") > 0
    assert "in its hands" in output


@pytest.mark.slow
def test_the_example_order_events_in_python_proves_its_promises(server):
    output = python(
        "order_events/order_events.py",
        *("--url", url(server), "--orders", 60, "--events", 4, "--settle-ms", 2000, "--workers", 4),
    )
    assert figure(output, "events pushed") == 240
    assert figure(output, "orders pushed out of order") > 0
    assert figure(output, "pushed again, refused") > 0
    assert figure(output, "handlers that threw") > 0
    assert figure(output, "workers killed at work") == 1


def has_php_redis() -> bool:
    php = shutil.which("php")
    return bool(php) and "redis" in subprocess.run([php, "-m"], capture_output=True, text=True).stdout.split()


def has_php_framework(*packages) -> bool:
    return has_php_redis() and all(os.path.isdir(f"/usr/share/php/{package}") for package in packages)


@pytest.mark.slow
@pytest.mark.skipif(
    not has_php_framework("Illuminate/Queue", "Illuminate/Redis", "Illuminate/Events", "Illuminate/Bus"),
    reason=lacking("Laravel's queues"),
)
def test_the_example_laravel_proves_its_promises(server):
    output = run("php", EXAMPLES / "laravel/jobs.php", f"--port={server.port}")
    assert figure(output, "orders closed") == 60
    assert figure(output, "jobs that threw") == 12
    assert figure(output, "workers killed") == 1
    assert figure(output, "jobs run again") >= 13


@pytest.mark.slow
@pytest.mark.skipif(
    not has_php_framework("Symfony/Component/Messenger", "Symfony/Component/EventDispatcher"),
    reason=lacking("Symfony Messenger"),
)
def test_the_example_symfony_proves_its_promises(server):
    output = run("php", EXAMPLES / "symfony/messages.php", f"--port={server.port}")
    assert figure(output, "orders closed") == 57
    assert figure(output, "in failure transport") == 3
    assert figure(output, "consumers killed") == 1
    assert figure(output, "handled again") >= 16


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_the_example_scale_out_over_a_cluster_proves_its_promises():
    output = with_package(
        "scale_out/cluster.py",
        *("--module", module_path(), "--redis-server", engine(), "--redis-cli", cli()),
        # A slot takes redis-cli a millisecond on an idle machine and a fifth of a second on a very busy one.
        *("--seconds", 8, "--users", 200, "--rate", 200, "--slots", 300),
        seconds=110,
    )
    assert figure(output, "partitions moved") > 3
    assert "128 partitions" in output
    assert figure(output, "events sent") > 500
    assert "failed over to its replica" in output


@pytest.mark.slow
def test_the_example_tenants_waits_at_ten_thousand_queues(server):
    output = python("tenants/tenants.py", "--url", url(server), "--tenants", 10_000, "--backlog", 5_000)
    assert figure(output, "queues") == 10_001
    assert figure(output, "messages handled") == 15_000


def cli() -> str:
    """The redis-cli beside the engine under test, else the one on the path."""
    beside = os.path.join(os.path.dirname(engine()), "redis-cli")
    return beside if os.path.dirname(engine()) and os.path.exists(beside) else "redis-cli"


# A small run of each example, and a run with an option that disables the subject of the example: then its figures must
# show it.
PARTNERS = ("partner_api/partner_api.py", "--notices", 160, "--partners", 4, "--downtime", 700, "--threads", 4)


@pytest.mark.slow
def test_the_example_partner_api_calls_nobody_in_vain(server):
    output = with_package(*PARTNERS, "--url", url(server))
    for label in ("answered 429", "not answered at all", "times a breaker opened", "open breakers seen in DQ.GROUPS"):
        assert figure(output, label) > 0, label
    for label in ("calls made during Retry-After", "calls made while open", "attempts burned by 429"):
        assert figure(output, label) == 0, label


@pytest.mark.slow
@pytest.mark.parametrize(
    "without, wrong",
    [
        ("pause", "calls made during Retry-After"),
        ("breaker", "calls made while open"),
        ("snooze", "attempts burned by 429"),
    ],
)
def test_the_example_partner_api_sees_what_each_verb_is_for(server, without, wrong):
    output = with_package(*PARTNERS, "--url", url(server), "--without", without, code=1)
    assert figure(output, wrong) > 0


PIPELINE = ("order_pipeline/order_pipeline.py", "--orders", 150, "--workers", 1)


@pytest.mark.slow
def test_the_example_order_pipeline_loses_and_doubles_nothing(server):
    output = with_package(*PIPELINE, "--url", url(server))
    assert figure(output, "workers killed") > 5 and figure(output, "killed at work") > 0
    assert figure(output, "doubled") == figure(output, "lost") == 0


@pytest.mark.slow
def test_the_example_order_pipeline_sees_what_two_commands_double(server):
    output = with_package(*PIPELINE, "--url", url(server), "--apart", 20, code=1)
    assert figure(output, "doubled") > 0


REPORT = ("report_of_many/report_of_many.py", "--rows", 10_000, "--workers", 4, "--kills", 2)


@pytest.mark.slow
def test_the_example_report_of_many_goes_on_from_its_notes(server):
    output = with_package(*REPORT, "--url", url(server))
    assert figure(output, "workers killed midway") == 2
    assert figure(output, "went on from a note") == 2
    assert figure(output, "rows missing in the report") == figure(output, "rows not done when it began") == 0


@pytest.mark.slow
def test_the_example_report_of_many_sees_what_a_note_is_for(server):
    output = with_package(*REPORT, "--url", url(server), "--without-note", code=1)
    assert figure(output, "killed but not gone on") == 2


@pytest.mark.slow
def test_the_example_thumbnails_publishes_albums_when_their_pictures_are_done(server):
    output = with_package("thumbnails/thumbnails.py", "--albums", 40, "--kills", 2, "--url", url(server))
    for label in ("pictures mended", "pictures given up"):
        assert figure(output, label) > 0, label
    for label in ("albums not published", "published too early", "pictures that do not add up"):
        assert figure(output, label) == 0, label


APPROVAL = ("approval/approval.py", "--orders", 60, "--patience", 1500)


@pytest.mark.slow
def test_the_example_approval_waits_for_signals(server):
    output = with_package(*APPROVAL, "--url", url(server))
    for label in ("approved by a credit check", "answered by the boss", "expired"):
        assert figure(output, label) > 0, label
    assert figure(output, "deliveries in vain") == figure(output, "orders against the boss's word") == 0


@pytest.mark.slow
def test_the_example_approval_sees_what_parking_is_for(server):
    output = with_package(*APPROVAL, "--url", url(server), "--poll", code=1)
    assert figure(output, "deliveries in vain") > 100


WEBHOOKS = ("webhooks/webhooks.py", "--jobs", 80)


@pytest.mark.slow
def test_the_example_webhooks_tells_everything_in_order(server):
    output = with_package(*WEBHOOKS, "--url", url(server))
    assert figure(output, "notifiers killed") == 5
    assert figure(output, "calls that failed") > 0
    assert figure(output, "transitions not told") == figure(output, "told in the wrong order") == 0


GATEWAY = ("llm_gateway/llm_gateway.py", "--requests", 40)


@pytest.mark.slow
def test_the_example_llm_gateway_keeps_limits_and_lets_nobody_starve(server):
    output = with_package(*GATEWAY, "--url", url(server))
    assert figure(output, "workers killed") == 2
    assert figure(output, "answered 429") > 0
    for label in ("windows exceeded", "too many at once", "delivered in a pause", "requests never answered", "tenants starved"):
        assert figure(output, label) == 0, label


@pytest.mark.slow
@pytest.mark.parametrize("without, wrong", [("fair", "tenants starved"), ("limits", "windows exceeded")])
def test_the_example_llm_gateway_sees_what_each_option_is_for(server, without, wrong):
    output = with_package(*GATEWAY, "--url", url(server), "--without", without, code=1)
    assert figure(output, wrong) > 0
