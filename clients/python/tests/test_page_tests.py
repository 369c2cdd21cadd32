"""The tests that the pages of the drivers show work as pasted."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

from tests.harness.server import ROOT

PACKAGE = ROOT / "clients/python/src"


@pytest.mark.parametrize("page, needs", [("python", "redis"), ("celery", "celery"), ("dramatiq", "dramatiq"), ("taskiq", "taskiq"), ("django", "django")])
def test_the_test_of_a_page(dq_url, tmp_path, page, needs):
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"needs {needs}")
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / f"docs/drivers/{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    [block] = [block for block in blocks if "(dq_url)" in block]
    if page == "django":
        # A project has its settings, and Django 5.2 has tasks by another package.
        settings = 'INSTALLED_APPS=["dqueue.django"], USE_TZ=True, DATABASES={}'
        (tmp_path / "conftest.py").write_text(f"import django\nfrom django.conf import settings\n\nsettings.configure({settings})\ndjango.setup()\n")
        if importlib.util.find_spec("django.tasks") is None:
            block = block.replace("from django.tasks", "from django_tasks")
    (tmp_path / "test_page.py").write_text(block)
    env = {**os.environ, "PYTHONPATH": str(PACKAGE), "DQ_TEST_URL": dq_url}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "dqueue_pytest", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", tmp_path]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
