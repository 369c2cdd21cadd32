"""An outbox: messages are sent in the transaction of SQLAlchemy. See `dqueue.drivers.sqlalchemy`."""

from dqueue.drivers.sqlalchemy import Outbox, outbox_table

__all__ = ["Outbox", "outbox_table"]
