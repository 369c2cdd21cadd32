"""The app, which Django needs for the command dq_worker."""

from django.apps import AppConfig


class DqConfig(AppConfig):
    name = "dqueue.drivers.django"
    label = "dqueue"
    verbose_name = "dq"
