"""Django finds here the app of `INSTALLED_APPS = ["dqueue.django.outbox"]`."""

from dqueue.drivers.django.outbox.apps import DqOutboxConfig

__all__ = ["DqOutboxConfig"]
