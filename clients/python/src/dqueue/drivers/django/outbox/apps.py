"""The app with the table."""

from django.apps import AppConfig


class DqOutboxConfig(AppConfig):
    name = "dqueue.drivers.django.outbox"
    label = "dqueue_outbox"
    verbose_name = "dq outbox"
    default_auto_field = "django.db.models.BigAutoField"
