"""Fixtures of the tests that look at dq web in Chromium; a test module takes them by naming this one in pytest_plugins."""

import re

import pytest

from tests.harness.browser import Browser
from tests.harness.cli import Cli
from tests.harness.web import Web

pytest_plugins = ["tests.harness.cli_fixtures"]


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@pytest.fixture
def web(program, server, tmp_path):
    with Web(Cli(program, f"redis://127.0.0.1:{server.port}"), tmp_path / "web.log") as web:
        yield web


@pytest.fixture
def clean(browser):
    """The browser. Afterwards the test fails if its policy has refused something, or if it has asked other sites."""
    browser.driver.get("about:blank")
    browser.complaints(), browser.requested()
    browser.driver.delete_all_cookies()
    yield browser
    hosts = {re.sub(r"^(\w+://[^/:]*).*", r"\1", address) for address in browser.requested()}
    assert hosts <= {"http://127.0.0.1", "about:blank"}, hosts
    assert browser.complaints() == []


def fill(do):
    """Dead messages of two types, one group that is held, another queue."""
    do("DQ.CREATE", "shop", "BACKOFF", "FIXED", 600000)
    for n in range(5):
        do("DQ.SEND", "shop", '{"n": %d}' % n, "ID", f"dead-{n}", "TYPE", "ab"[n % 2])
    for _, receipt, *_ in do("DQ.FETCH", "shop", "COUNT", 5):
        do("DQ.NACK", "shop", receipt, "FATAL", "ERROR", "HTTP 500")
    do("DQ.SEND", "mails", "x")
