"""A backend for the tasks of Django 6, and the command `manage.py dq_worker`.

INSTALLED_APPS = [..., "dqueue.django"]
TASKS = {"default": {"BACKEND": "dqueue.django.DqBackend", "OPTIONS": {"url": "redis://localhost:6379/0"}}}
"""

from dqueue.drivers.django.backend import DqBackend
from dqueue.working.middleware import effects

__all__ = ["DqBackend", "effects"]
