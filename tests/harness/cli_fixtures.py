"""Fixtures of the tests of the program dq; a test module takes them by naming this one in pytest_plugins."""

import shutil
import subprocess

import pytest

from tests.harness.cli import Cli, build
from tests.harness.optional import need
from tests.harness.server import free_port


def pytest_collection_finish(session):
    """Builds it before the tests, because the time of each of them is limited, and compiling takes minutes."""
    if not session.config.option.collectonly and any("program" in item.fixturenames for item in session.items):
        build()


@pytest.fixture(scope="session")
def program():
    """The program dq."""
    return build()


@pytest.fixture
def dq(program, server):
    """Runs dq on the shared server."""
    return Cli(program, f"redis://127.0.0.1:{server.port}")


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A CA, and a certificate of it that serves as the server's and as a client's."""
    need(shutil.which("openssl"), "openssl")
    there = tmp_path_factory.mktemp("tls")

    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=there, check=True, capture_output=True)

    new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    openssl(*new, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=test CA")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=localhost")
    (there / "own.ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl(*"x509 -req -in own.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile own.ext -out own.crt".split())
    return there


@pytest.fixture
def tls_url(make_server, certificates):
    """A server that demands TLS with a certificate of its CA, has the queue `q` and the user `me`."""
    port = free_port()
    server = make_server(
        tls_port=port,
        tls_cert_file=certificates / "own.crt",
        tls_key_file=certificates / "own.key",
        tls_ca_cert_file=certificates / "ca.crt",
    )
    server.client().execute_command("DQ.SEND", "q", "x")
    server.client().execute_command(*"ACL SETUSER me on >pa55 ~* +@all".split())
    return f"rediss://me:pa55@localhost:{port}"
