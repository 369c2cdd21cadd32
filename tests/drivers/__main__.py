"""Runs the own tests of kombu, Celery and Dramatiq, once with redis:// and once with dq://, and compares.

The tests come from the source archives of the installed versions. Ends with 1 if a test fails with dq:// that does not
fail with redis:// and is not listed here as a difference.
"""

import argparse
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from importlib.metadata import version
from pathlib import Path

from tests.harness.server import ROOT, Server

WORK = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "drivers"
HERE = Path(__file__).parent
SUITES = ["kombu", "celery", "dramatiq"]
KOMBU = ["test_redis.py", "test_redis_brpop_qos.py"]
# The tests of the broker, and those that run actors. The rest is about other brokers, the command line and single
# classes.
DRAMATIQ = ["redis", "worker", "actors", "callbacks", "composition", "generic_actors", "results"]
# These tests need other services and libraries, and have nothing to do with the broker.
OTHER = ["backend", "database_backend", "security", "serialization", "logfile_format", "mem_leak_in_exception_handling"]

DIFFERENCES = {
    # These tests look into the keys of the Redis transport.
    "test_restore_visible_requeues_expired_unacked",
    "test_failed_requeue_keeps_message_unacked",
    "test_failed_restore_visible_keeps_message_unacked",
    "test_unacked_message_requeued_on_connection_close",
    # This test looks into them over the connection of the fetch, which goes on its way with an ack.
    "test_hub_pauses_pending_brpop_until_ack",
    # This test expects that a message is doubled, but not of brokers whose URL begins with redis.
    "test_chord_header_id_duplicated_on_rabbitmq_msg_duplication",
    # This test clears what it waits for after it has sent its task, which a worker may have by then.
    "test_replaced_task_nesting_level_0",
    # A task with an eta waits in the server, so no worker has it scheduled.
    "test_scheduled",
    # These tests look into the keys of RedisBroker or call its own methods (docs/drivers/dramatiq.md has their
    # counterparts).
    "test_redis_consumer_ack_can_retry_on_connection_error",
    "test_redis_consumer_nack_can_retry_on_connection_error",
    "test_redis_dead_lettered_messages_are_cleaned_up",
    "test_redis_join_race_condition",
    "test_redis_messages_belonging_to_missing_actors_are_rejected",
    "test_redis_messages_can_be_dead_lettered",
    "test_redis_requeues_unhandled_delay_messages_on_shutdown",
    "test_redis_requeues_unhandled_messages_on_shutdown",
    "test_redis_unacked_messages_can_be_requeued",
}


def sources(name: str) -> Path:
    """Returns the directory with the sources of the installed version, which are downloaded once."""
    release = f"{name}-{version(name)}"
    if not (WORK / release).exists():
        WORK.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--no-binary", ":all:", "--dest", WORK, f"{name}=={version(name)}"], check=True)
        subprocess.run(["tar", "-C", WORK, "-xzf", WORK / f"{release}.tar.gz"], check=True)
    return WORK / release


def suite(name: str, scheme: str) -> Path:
    """Returns a copy of the suite for one broker."""
    copy = WORK / f"{name}-{scheme}"
    shutil.rmtree(copy, ignore_errors=True)
    folder = "tests" if name == "dramatiq" else "t"
    shutil.copytree(sources(name) / folder, copy / folder)
    (copy / "pytest.ini").write_text(
        "[pytest]\npython_classes = test_*\ntimeout = 600\nfilterwarnings = ignore\naddopts = -p no:cacheprovider\n"
    )
    # Some tests start programs, which need dq:// too.
    (copy / "sitecustomize.py").write_text("import dqueue.kombu\n")
    if name == "kombu":
        for file in KOMBU:
            path = copy / "t/integration" / file
            path.write_text(path.read_text().replace("redis://", f"{scheme}://"))
    if name == "dramatiq":
        (copy / "tests/__init__.py").touch()
        shutil.copy(HERE / "dramatiq_common.py", copy / "tests/common.py")
        shutil.copy(HERE / "dramatiq_fixtures.py", copy / "tests/conftest.py")
    return copy


def failures(name: str, scheme: str, server: Server, only: list[str]) -> set[str]:
    """Runs a suite. Returns the names of the tests that failed. Ends the program if most of them could not even begin."""
    server.client().flushall()
    copy = suite(name, scheme)
    tests = {
        "kombu": [f"t/integration/{file}" for file in KOMBU],
        "celery": ["-p", "celery.contrib.pytest", "t/integration"]
        + [f"--ignore=t/integration/test_{file}.py" for file in OTHER],
        # Python 3.11 cannot parse the source of a test that a time limit has ended, so tracebacks are shown without.
        "dramatiq": ["--tb=native", *(f"tests/test_{file}.py" for file in DRAMATIQ)],
    }[name]
    address = f"127.0.0.1:{server.port}"
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{copy}{os.pathsep}{ROOT / 'clients/python/src'}",
        "REDIS_HOST": "127.0.0.1",
        "REDIS_PORT": str(server.port),
        "REDIS_6379_TCP": str(server.port),
        "TEST_BROKER": f"{scheme}://{address}/1",
        "TEST_BACKEND": f"redis://{address}/0",
    }
    report = copy / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "dqueue.kombu", f"--junitxml={report}", *tests, *only]
    subprocess.run(command, cwd=copy, env=env)
    cases = [*ElementTree.parse(report).iter("testcase")]
    if 2 * sum(case.find("error") is not None for case in cases) > len(cases):
        sys.exit(f"{name} with {scheme}://: most of the tests had errors before they began, so they compare nothing")
    bad = {case.get("name", "") for case in cases if case.find("failure") is not None or case.find("error") is not None}
    return {name.partition("[")[0] for name in bad}


def main() -> int:
    options = argparse.ArgumentParser(prog="tests.drivers", description=__doc__)
    options.add_argument("--suite", choices=SUITES, action="append", help="default: all")
    options.add_argument("pytest", nargs="*", help="further flags for pytest, after --")
    given = options.parse_args()
    worse: set[str] = set()
    server = Server().start()
    try:
        for name in given.suite or SUITES:
            failed = {scheme: failures(name, scheme, server, given.pytest) for scheme in ("redis", "dq")}
            for scheme, tests in failed.items():
                print(f"{name} with {scheme}://: {len(tests)} tests failed", *sorted(tests), sep="\n    ")
            worse |= failed["dq"] - failed["redis"] - DIFFERENCES
    finally:
        server.close()
    print("fails with dq:// only, and should not:", *(sorted(worse) or ["nothing"]))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
