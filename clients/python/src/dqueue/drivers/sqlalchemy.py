"""Sends messages in the transaction of a Session or a Connection of SQLAlchemy.

outbox = Outbox(connect("redis://localhost"), Base.metadata)

with Session(engine) as session, session.begin():
    session.add(order)
    outbox.send(session, "mails", "welcome ann")
"""

import signal
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Unpack

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    event,
    select,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.orm import Session, scoped_session

from dqueue.drivers import outbox
from dqueue.drivers.outbox import BATCH, HOUR, Row
from dqueue.protocol.client import Client
from dqueue.protocol.durable import Durable
from dqueue.protocol.options import Millis, SendOptions

MOST = 1000
"""The number of messages of a transaction that are sent at once after its commit. The others are left to a relay."""


def outbox_table(metadata: MetaData, name: str = "dq_outbox") -> Table:
    """Adds the table of the outbox to `metadata`. docs/outbox.md explains the columns."""
    return Table(
        name,
        metadata,
        Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
        Column("message_id", String(1024), nullable=False),
        Column("queue", String(1024), nullable=False),
        Column("line", String(32), nullable=False),
        Column("message", Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb"), nullable=False),
        Index(f"{name}_line", "line", "seq"),
        sqlite_autoincrement=True,
    )


class TableRows:
    """The table, with connections of an engine."""

    def __init__(self, engine: Any, table: Table) -> None:
        self._engine = engine
        self._table = table

    def read(self, *, lines: Sequence[str] = (), but: Sequence[str] = ()) -> list[Row]:
        columns = self._table.c
        query = select(columns.seq, columns.message_id, columns.queue, columns.line, columns.message)
        if lines:
            query = query.where(columns.line.in_(lines))
        if but:
            query = query.where(columns.line.not_in(but))
        with self._engine.connect() as connection:
            return [Row(*row) for row in connection.execute(query.order_by(columns.seq).limit(BATCH))]

    def delete(self, rows: Sequence[Row]) -> None:
        columns = self._table.c
        # A sequence may begin again, after a restore say. So the id must be the same, too.
        ours = columns.seq.in_([row.seq for row in rows]) & columns.message_id.in_([row.message_id for row in rows])
        with self._engine.begin() as connection:
            connection.execute(self._table.delete().where(ours))

    def close(self) -> None:
        """Nothing is kept: the pool of the engine replaces broken connections."""


class Outbox:
    """Writes messages to a table in the transaction of the caller, and sends them after its commit.

    `metadata` gets the table, unless it has one of this name, so that your migration (`create_all`, Alembic) makes it.
    After the commit of a Session its messages are sent at once. What is left, and what a Connection has written, is sent by a
    relay: `run`, in any number of programs. `dedup` and `durable` are those of `dqueue.drivers.outbox.Outbox`.
    """

    def __init__(
        self,
        client: Client,
        metadata: MetaData,
        *,
        table: str = "dq_outbox",
        dedup: Millis = HOUR,
        durable: bool | Durable = False,
    ) -> None:
        known = metadata.tables.get(table)
        self.table = outbox_table(metadata, table) if known is None else known
        self._client = client
        self._settings: dict[str, Any] = {"dedup": dedup, "durable": durable}
        self._sending: dict[Any, outbox.Outbox] = {}
        event.listen(Session, "after_commit", self._after_commit)

    def send(
        self,
        session: Session | scoped_session[Session] | Connection,
        queue: str,
        payload: str | bytes,
        *,
        id: str | None = None,
        **options: Unpack[SendOptions],
    ) -> str:
        """Writes a message to the table. Returns its id. `options` are those of `Queue.send`; a delay counts from now."""
        row = Row.of(queue, payload, id, options)
        fields = {name: getattr(row, name) for name in ("message_id", "queue", "line", "message")}
        session.execute(self.table.insert().values(**fields))
        if not isinstance(session, Connection):
            session.info.setdefault(self, deque(maxlen=MOST)).append(row.line)
        return row.message_id

    def send_task(
        self, session: Session | scoped_session[Session] | Connection, task: Any, /, *args: Any, **kwargs: Any
    ) -> str:
        """Writes a call of a task of `Tasks` to the table, which must have a Queue. Returns the id of its message.

        `task.with_options(...)` gives options. The middleware of the tasks is entered around this.
        """
        sending = task.definition.sending(task.tasks.queue, args, kwargs, None, task.options)
        with ExitStack() as stack:
            for middleware in task.tasks.middleware:
                stack.enter_context(middleware.send(sending))
            given: Any = {**sending.options, "type": sending.type}
            return self.send(session, sending.queue, sending.payload, id=sending.id, **given)

    def relay(self, engine: Engine) -> int:
        """Sends all rows that are there. Returns how many."""
        return self._of(engine).relay()

    def run(self, engine: Engine, stop: threading.Event | None = None) -> None:
        """Sends rows until `stop` is set. Without it, until SIGTERM or SIGINT."""
        if stop is None:
            ends = stop = threading.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: ends.set())
        self._of(engine).run(stop)

    def _of(self, engine: Any) -> outbox.Outbox:
        if engine not in self._sending:
            self._sending[engine] = outbox.Outbox(self._client, TableRows(engine, self.table), **self._settings)
        return self._sending[engine]

    def _after_commit(self, session: Session) -> None:
        # The end of a savepoint is no commit. After a rollback there are lines without rows, too.
        if self in session.info and not session.in_nested_transaction():
            lines = session.info.pop(self)
            self._of(session.get_bind(clause=self.table.insert()).engine).committed(lines)
