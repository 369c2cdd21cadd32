"""The plugin for pytest: a server for the tests of a user, and no cost for other tests."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import dqueue
import pytest
from dqueue.testing import Server

from tests.harness.cli import build
from tests.harness.server import engine, module_path

SOURCE = Path(dqueue.__file__).parents[1]


@pytest.fixture(scope="module")
def environment():
    """The variables with which the program dq is found, and no server is named."""
    variables = {name: value for name, value in os.environ.items() if name != "DQ_TEST_URL"}
    variables |= {"DQ_CLI": str(build()), "DQ_ENGINE": shutil.which(engine()), "DQ_MODULE": str(module_path())}
    return {**variables, "PYTHONPATH": str(SOURCE)}


def run_tests(text, where, environment, *options):
    (where / "test_mine.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "dqueue_pytest", *options, "test_mine.py"]
    return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True)


def test_a_test_of_a_user_needs_no_server(tmp_path, environment):
    done = run_tests(
        "def test_delay(dq_queue):\n"
        "    dq_queue.send('x', delay=1000)\n"
        "    assert dq_queue.fetch() == []\n"
        "    dq_queue.advance(1000)\n"
        "    assert dq_queue.fetch()[0].text == 'x'\n"
        "def test_url(dq_server, dq_url):\n"
        "    assert dq_server.url == dq_url\n",
        tmp_path,
        environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_of_the_page(tmp_path, environment):
    page = (SOURCE.parents[2] / "docs/testing.md").read_text()
    [code] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    done = run_tests(code, tmp_path, environment)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_tests_that_do_not_use_it_do_not_import_dqueue(tmp_path, environment):
    text = "import sys\ndef test_nothing():\n    assert not {'dqueue', 'redis'} & set(sys.modules)\n"
    done = run_tests(text, tmp_path, environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_dq_and_without_a_server_it_says_what_to_install(tmp_path, environment):
    bare = {name: value for name, value in environment.items() if name not in ("DQ_CLI", "PATH")}
    done = run_tests("def test_delay(dq_queue):\n    pass\n", tmp_path, {**bare, "PATH": "/nothing"})
    assert done.returncode == 1
    assert "pip install dq-server" in done.stdout


def test_a_server_that_does_not_start_says_why(environment, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(RuntimeError, match="/no/file cannot be read"):
        Server("--config", "/no/file")
