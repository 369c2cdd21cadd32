"""Django finds here the app of `INSTALLED_APPS = ["dqueue.django"]`."""

from dqueue.drivers.django.apps import DqConfig

__all__ = ["DqConfig"]
