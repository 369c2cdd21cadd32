"""The rooms of the package: arrows point down, nothing below does I/O, and the generated modules are up to date."""

import ast
import importlib
import pickle
import runpy
import subprocess
import sys
from pathlib import Path

import dqueue
import pytest
from dqueue import Message, NotConfirmed, Reject, Retry, TaskFailed

PACKAGE = Path(dqueue.__file__).parent
ROOMS = ["protocol", "working", "clients", "_sync _async", "tools", "drivers", "names"]
"""Each layer uses only those before it. The rooms on one floor do not use each other."""
# The modules beside the folders.
LOOSE = {
    "clients": ["_needs", "connection", "consumer", "nodes"],
    "tools": ["compression", "ephemeral_server", "logs", "manual_queue", "offload", "opentelemetry", "program", "secrets", "testing"],
    "names": ["__init__", "asyncio", "message", "records", "routing", "kombu", "dramatiq", "sqlalchemy", "taskiq", "django"],
}
IO = {"asyncio", "concurrent", "http", "multiprocessing", "os", "select", "selectors", "socket", "ssl", "subprocess", "urllib"}


def room(module):
    first = module.split(".")[1] if "." in module else "__init__"
    return next((name for name, modules in LOOSE.items() if first in modules), first)


def modules():
    """The modules, and what each of them imports, also within functions."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(["dqueue", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
        found[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found[name] |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name: {target(one, found) for one in used} for name, used in found.items()}


def target(imported, known):
    """The module that `from module import name` imports."""
    is_own = imported.split(".")[0] == "dqueue" and imported not in known
    return imported.rpartition(".")[0] if is_own else imported


MODULES = modules()
NAMES = runpy.run_path(str(PACKAGE.parents[1] / "tools/async_to_sync.py"))["MODULES"]


def test_each_room_uses_only_those_below_it():
    floors = {name: floor for floor, names in enumerate(ROOMS) for name in names.split()}
    for module, used in MODULES.items():
        for other in used & MODULES.keys():
            above, below = room(module), room(other)
            assert above == below or floors[above] > floors[below], f"{module} uses {other}"


def test_no_modules_import_each_other_in_a_circle():
    done, path = set(), []

    def visit(module):
        assert module not in path, " -> ".join([*path, module])
        if module not in done:
            path.append(module)
            for other in MODULES[module] & MODULES.keys():
                visit(other)
            path.pop()
            done.add(module)

    for module in MODULES:
        visit(module)


@pytest.mark.parametrize("name", ["protocol", "working"])
def test_what_decides_does_no_io(name):
    used = {one for module, used in MODULES.items() if room(module) == name for one in used}
    assert {one for one in used if one.split(".")[0] in IO} == set()
    # It imports only the errors of redis-py.
    assert {one for one in used if one.split(".")[0] == "redis" and not one.startswith("redis.exceptions")} == set()


def test_the_generated_modules_are_up_to_date():
    done = subprocess.run(
        [sys.executable, PACKAGE.parents[1] / "tools/async_to_sync.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_stale_module_is_told_with_what_to_run(tmp_path):
    copy = tmp_path / "client"
    for path in ["tools/async_to_sync.py", *(f"src/dqueue/{kind}/{name}.py" for kind in ("_async", "_sync") for name in NAMES)]:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_text((PACKAGE.parents[1] / path).read_text())
    stale = copy / "src/dqueue/_sync/queue.py"
    text = stale.read_text()
    stale.write_text(text.replace("patience", "haste"))
    command = [sys.executable, copy / "tools/async_to_sync.py"]
    done = subprocess.run([*command, "--check"], capture_output=True, text=True)
    said = "error: src/dqueue/_sync/queue.py is stale: run clients/python/tools/async_to_sync.py\n"
    assert (done.returncode, done.stderr) == (1, said)
    subprocess.run(command, check=True)
    assert stale.read_text() == text


@pytest.mark.parametrize("name", NAMES)
def test_a_generated_module_says_so_on_its_first_line(name):
    first = (PACKAGE / f"_sync/{name}.py").read_text().splitlines()[0]
    assert first.startswith(f"# Generated from _async/{name}.py by tools/async_to_sync.py.")
    assert "await" not in (PACKAGE / f"_sync/{name}.py").read_text()


PUBLIC = {
    "dqueue": [
        *["BackoffKind", "Batch", "Child", "Coding", "Conditions", "Consumer", "Explanation", "FailedAttempt", "Family", "Follow", "Group"],
        *["Handlers", "Info", "Job", "Layers", "Limit", "Message", "Middleware", "Next", "Outcome", "Park", "Pause", "Queue"],
        *["QueueOptions", "Record", "Reject", "Retry", "Schedule", "ScheduleOptions", "SendOptions", "Sending", "Serializer"],
        *["Durable", "Effects", "FetchOptions", "GroupOptions", "LimitOptions", "NackOptions", "NotConfirmed", "WorkerOptions"],
        *["Signal", "Snooze", "State", "Task", "TaskFailed", "Tasks", "Window", "Worker", "connect", "connect_cluster"],
        "current_message",
    ],
    "dqueue.asyncio": ["Family", "Job", "Queue", "Task", "Tasks", "Worker", "connect", "connect_cluster"],
    "dqueue.connection": ["open_client", "open_client_asyncio"],
    "dqueue.logs": ["JsonFormatter", "MessageFilter"],
    "dqueue.message": ["Message"],
    "dqueue.program": ["main"],
    "dqueue.records": ["Record"],
    "dqueue.routing": ["Layout", "partition", "queues", "route", "slot", "tags"],
    "dqueue.testing": ["ManualQueue", "Server", "dq_client", "dq_queue", "dq_server", "dq_url", "manual_queue"],
    "dqueue_pytest": ["dq_client", "dq_queue", "dq_server", "dq_url", "manual_queue"],
}
"""The names that pages, examples, settings and programs use. It may become more, and never less."""

OF_FRAMEWORKS = {
    "dqueue.dramatiq": ["DqBroker", "DqConsumer", "DqMessage", "effects"],
    "dqueue.kombu": ["Channel", "QoS", "SecureTransport", "SentinelTransport", "Tag", "Transport", "effects"],
    "dqueue.opentelemetry": ["Tracing", "trace_headers"],
    "dqueue.secrets": ["Secrets"],
    "dqueue.sqlalchemy": ["Outbox", "outbox_table"],
    "dqueue.taskiq": ["DqBroker", "DqScheduleSource", "effects"],
}


def test_the_list_of_public_names_is_complete():
    assert sorted(PUBLIC["dqueue"]) == sorted(dqueue.__all__)


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_name_stays(module):
    assert [name for name in PUBLIC[module] if not hasattr(importlib.import_module(module), name)] == []


@pytest.mark.parametrize("module", OF_FRAMEWORKS)
def test_a_public_name_of_a_driver_stays(module):
    pytest.importorskip({"dqueue.secrets": "cryptography"}.get(module, module.split(".")[1]))
    assert [name for name in OF_FRAMEWORKS[module] if not hasattr(importlib.import_module(module), name)] == []


def test_the_urls_of_kombu_name_public_classes():
    aliases = pytest.importorskip("kombu.transport").TRANSPORT_ALIASES
    importlib.import_module("dqueue.kombu")
    names = {"dq": "Transport", "dqs": "SecureTransport", "dq-sentinel": "SentinelTransport"}
    assert {scheme: aliases[scheme] for scheme in names} == {scheme: f"dqueue.kombu:{name}" for scheme, name in names.items()}


def test_what_is_pickled_names_no_inner_module():
    message = Message("i", 7, 1, b"", None, None, 0, None, {}, 0, 0, 0, 0, queue="a")
    for one in (message, Retry("busy", delay=5), Reject("no"), TaskFailed("i", "dead", "busy"), NotConfirmed("late", reply=b"i")):
        written = pickle.dumps(one)
        assert b"dqueue." not in written
        read = pickle.loads(written)
        assert type(read) is type(one) and str(read) == str(one)
    assert pickle.loads(pickle.dumps(Retry("busy", delay=5))).delay == 5
    assert pickle.loads(pickle.dumps(TaskFailed("i", "dead", "busy"))).state == "dead"
    assert pickle.loads(pickle.dumps(NotConfirmed("late", reply=b"i", replicas=2))).replicas == 2


@pytest.mark.parametrize("module, name", [("message", "Message"), ("records", "Record")])
def test_what_was_pickled_before_the_rooms_is_read(module, name):
    # A pickle of protocol 0 names the class in plain text.
    assert pickle.loads(f"cdqueue.{module}\n{name}\n.".encode()) is getattr(dqueue, name)
