"""Runs tasks in a test: see `dqueue.drivers.django.testing`."""

from dqueue.drivers.django.testing import run_tasks

__all__ = ["run_tasks"]
