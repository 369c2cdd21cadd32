"""The package is tested from its sources against a real server with the module."""

import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PACKAGE / "src"))

from dqueue_pytest import dq_client, dq_queue, dq_server, manual_queue  # noqa: E402, F401

from tests.harness import bytecode  # noqa: E402
from tests.harness.server import Server, module_path  # noqa: E402
from tests.harness.topology import Cluster  # noqa: E402

bytecode.keep()


@pytest.fixture(scope="session")
def _server():
    if not module_path().exists():
        pytest.exit(f"no module at {module_path()}: build it first (make build) or set DQ_MODULE", 2)
    server = Server(appendonly="yes").start()
    yield server
    server.close()


@pytest.fixture
def server(_server):
    """A server that survives a restart with all its data; empty at the start of each test."""
    if not _server.alive():
        _server.start()
    with _server.wire() as wire:
        wire.ok("FLUSHALL")
    return _server


@pytest.fixture
def dq_url(server):
    """The address at which `dqueue.testing` finds the server."""
    return f"redis://127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def _nodes():
    nodes = Cluster().start()
    yield nodes
    nodes.close()


@pytest.fixture
def cluster(_nodes):
    """A cluster of three nodes for the tests of one file; empty at the start of each test."""
    _nodes.flush()
    return _nodes
