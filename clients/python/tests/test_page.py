"""docs/drivers/python.md works as pasted."""

import os
import re
import subprocess
import sys
from pathlib import Path

import dqueue
import pytest

SOURCES = Path(dqueue.__file__).parents[1]
PAGE = SOURCES.parents[2] / "docs/drivers/python.md"
BLOCK = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def shop(dq_url, tmp_path):
    """The files of the page, in a directory."""
    files = BLOCK.findall(PAGE.read_text())
    assert [name for name, _ in files] == ["shop.py", "order.py", "mails.py", "paid.py", "traced.py"]
    for name, code in files:
        (tmp_path / name).write_text(code.replace("redis://localhost", dq_url))
    return tmp_path


def start(shop, *words, **options):
    env = {**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{shop}"}
    return subprocess.Popen([sys.executable, *words], cwd=shop, env=env, **options)


def printed(shop, *words):
    with start(shop, *words, stdout=subprocess.PIPE, text=True) as process:
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    return said


def test_the_calls_of_the_page_are_run_by_its_worker(shop, dq_client):
    worker = start(shop, "-m", "dqueue.program", "shop:tasks")
    try:
        assert printed(shop, "order.py") == "dear ann\nhi eve\n"
        assert dqueue.Queue(dq_client, "mails").get("welcome:ben").state == "delayed"
        assert [one.name for one in dqueue.Queue(dq_client, "mails").schedules()] == ["report"]
    finally:
        worker.terminate()
        assert worker.wait(30) == 0


def test_the_coroutines_of_the_page_are_run_by_its_worker(shop):
    worker = start(shop, "-m", "dqueue.program", "mails:tasks")
    try:
        assert printed(shop, "-c", "import asyncio, mails; asyncio.run(mails.main())") == "18\n"
    finally:
        worker.terminate()
        assert worker.wait(30) == 0


def test_the_effects_of_the_page_are_done_once(shop, dq_client):
    worker = start(shop, "-m", "dqueue.program", "paid:tasks")
    try:
        assert printed(shop, "-c", "from paid import pay; print(pay.send('ann', 500).result())") == "None\n"
        assert (dq_client.hget("user:ann", "paid"), dq_client.xlen("outbox")) == (b"500", 1)
    finally:
        worker.terminate()
        assert worker.wait(30) == 0


def test_the_middleware_of_the_page_is_around_its_tasks(shop, dq_client):
    code = "from traced import tasks\n@tasks.task\ndef f(): pass\nprint(f.send().record().headers)"
    assert printed(shop, "-c", code) == "{'sent-by': b'shop'}\n"


def test_every_option_of_the_program_is_in_the_page(shop):
    said = printed(shop, "-m", "dqueue.program", "--help")
    page = PAGE.read_text()
    options = set(re.findall(r"--[a-z-]+", said)) - {"--help"}
    assert not [option for option in options if option not in page]
