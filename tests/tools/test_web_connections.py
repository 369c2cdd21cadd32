"""Connections to `dq web` that send half a request, nothing at all, or too many connections at once."""

import resource
import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

pytest_plugins = ["tests.harness.web_fixtures"]
pytestmark = pytest.mark.timeout(600)

# The longest time of a connection for a request, and the time that a busy machine adds.
PATIENCE, SLACK = 10, 15


@pytest.fixture
def connect(start):
    """Opens a connection to a running dq web and sends some bytes: connect(web, b"GET /")."""
    with ExitStack() as stack:

        def connect(web, text: bytes):
            at = urlsplit(web.url)
            connection = stack.enter_context(socket.create_connection((at.hostname, at.port), timeout=60))
            connection.sendall(text)
            return connection

        yield connect


def rest(connection) -> bytes:
    """The bytes that come until dq web closes the connection."""
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def test_half_requests_do_not_keep_others_out(start, connect):
    web = start()
    resource.prlimit(web.process.pid, resource.RLIMIT_NOFILE, (128, 128))
    for _ in range(160):
        connect(web, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: ")
    began = time.monotonic()
    assert web.visitor().ask("health").status in (200, 503)
    assert time.monotonic() - began < PATIENCE + SLACK


def test_a_connection_that_says_nothing_more_is_closed(start, connect):
    web = start()
    host = b"Host: localhost\r\n"
    silent = connect(web, b"")
    half = connect(web, b"GET / HTTP/1.1\r\nHost: loc")
    idle = connect(web, b"GET /style.css HTTP/1.1\r\n" + host + b"\r\n")
    form = connect(web, b"POST /do HTTP/1.1\r\n" + host + b"Content-Length: 10\r\n\r\nact=")
    began = time.monotonic()
    assert rest(silent) == b"" and rest(half) == b""
    assert rest(idle).startswith(b"HTTP/1.1 200 ")
    assert rest(form).startswith(b"HTTP/1.1 408 ")
    assert PATIENCE - 2 < time.monotonic() - began < PATIENCE + SLACK


def test_a_connection_is_kept_for_the_next_request(start, connect):
    web = start()
    connection = connect(web, b"")
    for _ in range(3):
        connection.sendall(b"GET /icon.svg HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        time.sleep(1)


def test_a_form_of_a_stranger_is_small(web):
    assert web.ask("login", {"user": "x" * 9000}).status == 413
