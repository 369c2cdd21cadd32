"""An outbox for Django: tasks and messages are sent in the transaction of the database.

INSTALLED_APPS = [..., "dqueue.django", "dqueue.django.outbox"]
TASKS = {"default": {"BACKEND": "dqueue.django.DqBackend", "OPTIONS": {"url": "redis://localhost", "outbox": True}}}

`manage.py migrate` makes the table, and `manage.py dq_outbox` runs a relay.
"""
