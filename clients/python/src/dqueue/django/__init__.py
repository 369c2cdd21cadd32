"""A backend for the tasks of Django 6, and the command `manage.py dq_worker`. See `dqueue.drivers.django`."""

from dqueue.drivers.django import DqBackend, effects

__all__ = ["DqBackend", "effects"]
