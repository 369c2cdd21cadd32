"""Fixtures of the server tests. Which server and module: see tests/harness/server.py."""

import itertools
import os

import pytest

from tests.harness import bytecode
from tests.harness.server import Server, assert_clean, module_path
from tests.harness.topology import Cluster, Pair
from tests.harness.waiting import many_sockets

bytecode.keep()

_numbers = itertools.count()


def _need_module():
    if not module_path().exists():
        pytest.exit(f"no module at {module_path()}: build it first (make build) or set DQ_MODULE", 2)


@pytest.fixture(scope="session")
def _shared():
    _need_module()
    many_sockets(4096)
    server = Server().start()
    yield server
    server.close()


@pytest.fixture
def server(_shared):
    """The plain server (no persistence) all tests share; emptied after each, restarted if it died."""
    if not _shared.alive():
        _shared.start()
    before = len(_shared.log())
    yield _shared
    _shared.drop_clients()
    if not _shared.alive():
        tail = _shared.log()[before:]
        _shared.log_path.write_text("")
        pytest.fail(f"the server died:\n{tail[-6000:]}")
    with _shared.wire(timeout=20) as wire:
        wire.ok("CLIENT", "UNPAUSE")
        wire.ok("FLUSHALL")
    assert_clean(_shared.log()[before:])


@pytest.fixture
def protocol() -> int:
    """The version of RESP that `r` speaks: 3, or the value of DQ_RESP. A queue behaves the same over both, so a test of
    its behaviour runs once. tests/commands/test_protocols.py holds the types of all replies over both, and a test that
    is about types has `@pytest.mark.parametrize("protocol", [2, 3])`."""
    return int(os.environ.get("DQ_RESP", 3))


@pytest.fixture
def r(server, protocol):
    """A redis-py client of the shared server."""
    return server.client(protocol=protocol)


@pytest.fixture
def r3(server):
    """A client over RESP3 only."""
    return server.client(protocol=3)


@pytest.fixture
def key():
    """A key name of this test's own."""
    return b"q:%d" % next(_numbers)


@pytest.fixture
def make_server():
    """Makes and starts servers of a test's own: make_server(appendonly="yes")."""
    _need_module()
    made = []

    def make(**conf) -> Server:
        server = Server(**conf)
        made.append(server)
        return server.start()

    yield make
    for server in made:
        server.close()


@pytest.fixture(scope="session")
def _pair():
    _need_module()
    pair = Pair().start()
    yield pair
    pair.close()


@pytest.fixture
def replica_pair(_pair):
    """A primary and its replica, in sync and empty, even if the last test has disturbed them."""
    _pair.heal()
    yield _pair
    for one in (_pair.primary, _pair.replica):
        one.drop_clients()


@pytest.fixture(scope="session")
def _cluster():
    _need_module()
    nodes = Cluster().start()
    yield nodes
    nodes.close()


@pytest.fixture
def cluster(_cluster):
    """Three cluster nodes; slots may lie where an earlier test moved them."""
    for node in _cluster.nodes:
        assert node.alive(), node.log()[-4000:]
    yield _cluster
    _cluster.flush()
    for node in _cluster.nodes:
        node.drop_clients()
