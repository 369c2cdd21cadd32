"""The settings of the tests of the Django backend. Tests that import this are skipped where there is no Django."""

import tempfile

import pytest

django = pytest.importorskip("django", minversion="5.2", reason="needs Django: pip install 'dq-queue[django]'")
if django.VERSION < (6, 0):
    pytest.importorskip("django_tasks", reason="needs django-tasks for Django 5.2")

from django.conf import settings  # noqa: E402

BACKEND = {"BACKEND": "dqueue.django.DqBackend", "QUEUES": ["default", "mails"]}
_files = tempfile.TemporaryDirectory(prefix="dq-django-")

settings.configure(
    INSTALLED_APPS=["dqueue.django", "dqueue.django.outbox"],
    TASKS={"default": BACKEND},
    USE_TZ=True,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{_files.name}/shop.sqlite"}},
)
django.setup()
