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
def site(program, server, tmp_path):
    """A running dq web. Its name is not that of the visitor in web_fixtures, since pytest knows all fixtures in one space."""
    with Web(Cli(program, f"redis://127.0.0.1:{server.port}"), tmp_path / "web.log") as site:
        yield site


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
