"""The table, in a database of Django."""

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connections, router, transaction

from dqueue.drivers.django.outbox.models import OutboxRow
from dqueue.drivers.outbox import BATCH, Outbox, Row

FIELDS = ("seq", "message_id", "queue", "line", "message")
MOST = 1000
"""The number of messages of a transaction that are sent at once after its commit. The others are left to a relay."""


class DjangoRows:
    """The table in the database of an alias."""

    def __init__(self, alias: str) -> None:
        self._alias = alias

    def read(self, *, lines: Sequence[str] = (), but: Sequence[str] = ()) -> list[Row]:
        rows = OutboxRow.objects.using(self._alias).order_by("seq")
        rows = rows.filter(line__in=lines) if lines else rows
        rows = rows.exclude(line__in=but) if but else rows
        return [Row(*row) for row in rows.values_list(*FIELDS)[:BATCH]]

    def delete(self, rows: Sequence[Row]) -> None:
        # A sequence may begin again, after a restore say. So the id must be the same, too.
        ours = {"seq__in": [row.seq for row in rows], "message_id__in": [row.message_id for row in rows]}
        OutboxRow.objects.using(self._alias).filter(**ours).delete()

    def close(self) -> None:
        connections[self._alias].close()


class DjangoOutbox:
    """Writes messages in the transaction of the caller, and sends them when it is committed.

    `alias` names the database, or is True for the one that the router names. `settings` are those of
    `dqueue.drivers.outbox.Outbox`.
    """

    def __init__(self, client: Any, alias: str | bool, **settings: Any) -> None:
        self.alias: str = router.db_for_write(OutboxRow) if alias is True else str(alias)
        self.sending = Outbox(client, DjangoRows(self.alias), **settings)
        self._local = threading.local()

    def send(self, queue: str, payload: str | bytes, id: str | None, options: Mapping[str, Any]) -> str:
        """Writes a message to the table. Returns its id."""
        row = Row.of(queue, payload, id, options)
        OutboxRow.objects.using(self.alias).create(**{name: getattr(row, name) for name in FIELDS[1:]})
        if not hasattr(self._local, "lines"):
            self._local.lines = deque(maxlen=MOST)
        self._local.lines.append(row.line)
        # The first of these calls sends all. Those of a savepoint that was rolled back are not made, so each message has one.
        transaction.on_commit(self._committed, using=self.alias)
        return row.message_id

    def _committed(self) -> None:
        # After a rollback there are lines without rows, too.
        lines = list(self._local.lines)
        self._local.lines.clear()
        if lines:
            self.sending.committed(lines)
