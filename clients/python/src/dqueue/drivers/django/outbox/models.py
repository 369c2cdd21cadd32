"""The table. docs/outbox.md explains the columns."""

from django.db import models


class OutboxRow(models.Model):
    seq = models.BigAutoField(primary_key=True)
    message_id = models.CharField(max_length=1024)
    queue = models.CharField(max_length=1024)
    line = models.CharField(max_length=32)
    message = models.TextField()

    class Meta:
        db_table = "dq_outbox"
        indexes = (models.Index(fields=("line", "seq"), name="dq_outbox_line"),)
