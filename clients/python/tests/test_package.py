"""The published package: the types hold, the package installs, pytest finds the fixtures."""

import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import dqueue
import pytest
from dqueue import _needs

PACKAGE = Path(dqueue.__file__).parents[2]
REPOSITORY = PACKAGE.parents[1]


def run(*command, **kwargs):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **kwargs)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs mypy")
def test_programs_of_users_pass_mypy(tmp_path):
    users = tmp_path / "users.py"
    users.write_text(
        "from dqueue import Message, Queue, Worker, connect\n"
        "from dqueue.asyncio import Queue as AsyncQueue, connect as connect_asyncio\n"
        "q = Queue(connect('redis://localhost'), 'jobs')\n"
        "id: str | None = q.send('x', delay=5, backoff=('EXP', 100))\n"
        "worker = Worker(q)\n"
        "@worker.handler('mail')\n"
        "def mail(message: Message) -> str:\n"
        "    return message.text\n"
        "async def main() -> None:\n"
        "    aq = AsyncQueue(connect_asyncio('redis://localhost'), 'jobs')\n"
        "    n: int = await aq.len('ready')\n"
        "    q.send('x', backoff='EXP')  # type: ignore[arg-type]\n"
        "    q.send('x', dellay=5)  # type: ignore[call-arg]\n"
    )
    readme = tmp_path / "readme.py"
    readme.write_text("\n".join(re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)))
    # mypy keeps its results about other packages in a cache, so the next run is faster. Each configuration has its own.
    cache = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")).resolve() / "mypy"
    words = ("--strict", "--config-file", "pyproject.toml", "--cache-dir", cache / "package")
    run(sys.executable, "-m", "mypy", *words, cwd=PACKAGE)
    env = {**os.environ, "MYPYPATH": str(PACKAGE / "src")}
    run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache / "users", users, readme, cwd=tmp_path, env=env)


def test_an_old_redis_py_is_refused_with_one_sentence(tmp_path):
    (tmp_path / "redis").mkdir()
    (tmp_path / "redis/__init__.py").write_text("__version__ = '4.6.0'\n")
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{PACKAGE / 'src'}"}
    done = subprocess.run([sys.executable, "-c", "import dqueue"], capture_output=True, text=True, env=env)
    said = done.stderr.splitlines()[-1]
    assert said == "ImportError: dqueue needs redis-py 5 or newer, and 4.6.0 is installed: pip install 'redis>=5'"


@pytest.mark.parametrize("name", ["dqueue.protocol.verbs", "dqueue.protocol.control_verbs", "dqueue.protocol.family_verbs"])
def test_no_verb_named_list_is_taken_for_the_type(name):
    # Python 3.14 evaluates annotations late, when the class has a method `list`. Where they are strings, it never does.
    module = importlib.import_module(name)
    for kind in [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == name]:
        for verb in filter(inspect.isfunction, vars(kind).values()):
            assert all(isinstance(one, str) for one in verb.__annotations__.values()), f"{kind}.{verb.__name__}"


def test_redis_py_5_and_newer_are_accepted():
    _needs.check("5.0.0")
    _needs.check("10.1")


@pytest.mark.slow
def test_the_package_installs_with_pip(tmp_path, dq_url):
    # pip builds inside the source tree, and a test must leave nothing behind there.
    source = tmp_path / "source"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__", "tests", "build", "*.egg-info"))
    target = tmp_path / "target"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps")
    run(*pip, "--target", target, source)
    assert (target / "dqueue" / "py.typed").exists()
    test = tmp_path / "test_mine.py"
    test.write_text(
        "def test_delay(manual_queue):\n"
        "    q = manual_queue()\n"
        "    q.send('x', delay=1000)\n"
        "    assert q.fetch() == []\n"
        "    q.advance(1000)\n"
        "    assert q.fetch()[0].text == 'x'\n"
    )
    env = {**os.environ, "PYTHONPATH": str(target), "DQ_TEST_URL": dq_url}
    run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test, cwd=tmp_path, env=env)
