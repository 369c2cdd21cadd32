"""python -m tests.outbox.app FRAMEWORK ROLE SETTINGS: a shop that writes orders and sends messages, or its relay.

FRAMEWORK is django, sqlalchemy or celery (Celery's own sending after the commit, with Django). ROLE is `setup`, which makes
the tables, the number of a shop, or `relay`. Each order has a token, which is the payload of its message, and the group of a
shop is its number. Every fifth transaction is rolled back. It never ends by itself.
"""

import json
import logging
import random
import sys
import threading
import time
import uuid
from contextlib import suppress

from tests.harness.databases import DATABASES

WAIT = 0.01
"""Seconds between two orders of a shop."""


class RolledBack(Exception):
    """Ends a transaction that is to be rolled back."""


class DjangoShop:
    """`transaction.atomic`, and the tasks of the backend."""

    apps, outbox = ("dqueue.django", "dqueue.django.outbox"), True

    def __init__(self, settings):
        import django
        from django.conf import settings as django_settings

        database = DATABASES[settings["database"]]
        if database.driver == "mysql":
            import pymysql

            # The version of mysqlclient that it stands for.
            pymysql.version_info = (2, 2, 7, "final", 0)
            pymysql.install_as_MySQLdb()
        backend = {"BACKEND": "dqueue.django.DqBackend", "OPTIONS": {"url": settings["redis"], "outbox": True, "prefix": ""}}
        django_settings.configure(
            INSTALLED_APPS=self.apps,
            DATABASES={"default": settings["django"]},
            TASKS={"default": {**backend, "QUEUES": ["default", settings["queue"]]}} if self.outbox else {},
            USE_TZ=True,
        )
        django.setup()
        self.settings = settings
        self.prepare()

    def prepare(self):
        from dqueue.drivers.django.tasks import task_backends

        self.outbox = task_backends["default"].outbox

    def setup(self):
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        self.execute("CREATE TABLE orders (shop INTEGER, n INTEGER, token VARCHAR(36), PRIMARY KEY (shop, n))")

    def execute(self, sql, values=()):
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else None

    def order(self, shop, token, is_rolled_back):
        from django.db import transaction

        with suppress(RolledBack), transaction.atomic():
            with suppress(RolledBack), transaction.atomic():
                self.send(shop, f"savepoint of {token}")
                raise RolledBack
            ((n,),) = self.execute("SELECT COALESCE(MAX(n), 0) + 1 FROM orders WHERE shop = %s", (shop,))
            self.execute("INSERT INTO orders VALUES (%s, %s, %s)", (shop, n, token))
            self.send(shop, f"rolled back {token}" if is_rolled_back else token)
            if is_rolled_back:
                raise RolledBack

    def send(self, shop, payload):
        self.outbox.send(self.settings["queue"], payload, None, {"group": str(shop), "retries": -1})

    def lost(self):
        from django.db import connection

        connection.close()

    def relay(self):
        self.outbox.sending.run(threading.Event())


class CeleryShop(DjangoShop):
    """`delay_on_commit` of Celery's tasks for Django."""

    apps, outbox = (), False

    def prepare(self):
        from celery import Celery
        from celery.contrib.django.task import DjangoTask

        app = Celery(broker=self.settings["redis"], task_cls=DjangoTask, set_as_current=False)
        app.conf.task_default_queue = self.settings["queue"]

        def order(token):
            """It is never run."""

        self.task = app.task(order)

    def send(self, shop, payload):
        self.task.delay_on_commit(payload)


class SqlalchemyShop:
    """Sessions of SQLAlchemy."""

    def __init__(self, settings):
        import sqlalchemy
        from dqueue import connect
        from dqueue.sqlalchemy import Outbox

        self.sa, self.queue = sqlalchemy, settings["queue"]
        self.engine = sqlalchemy.create_engine(settings["sqlalchemy"], pool_pre_ping=True)
        if self.engine.dialect.name == "sqlite":
            # As SQLAlchemy's page on SQLite says: the driver of Python begins transactions too late for savepoints.
            sqlalchemy.event.listen(self.engine, "connect", lambda driver, _: setattr(driver, "isolation_level", None))
            sqlalchemy.event.listen(self.engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        metadata = sqlalchemy.MetaData()
        number = lambda name: sqlalchemy.Column(name, sqlalchemy.Integer, primary_key=True)  # noqa: E731
        token = sqlalchemy.Column("token", sqlalchemy.String(36))
        self.orders = sqlalchemy.Table("orders", metadata, number("shop"), number("n"), token)
        self.outbox = Outbox(connect(settings["redis"]), metadata)
        self.metadata = metadata

    def setup(self):
        self.metadata.create_all(self.engine)

    def order(self, shop, token, is_rolled_back):
        from sqlalchemy.orm import Session

        with Session(self.engine) as session:
            with suppress(RolledBack), session.begin_nested():
                self.send(session, shop, f"savepoint of {token}")
                raise RolledBack
            last = self.sa.select(self.sa.func.coalesce(self.sa.func.max(self.orders.c.n), 0)).where(self.orders.c.shop == shop)
            session.execute(self.orders.insert().values(shop=shop, n=session.scalar(last) + 1, token=token))
            self.send(session, shop, f"rolled back {token}" if is_rolled_back else token)
            session.rollback() if is_rolled_back else session.commit()

    def send(self, session, shop, payload):
        self.outbox.send(session, self.queue, payload, group=str(shop), retries=-1)

    def lost(self):
        pass

    def relay(self):
        self.outbox.run(self.engine, threading.Event())


SHOPS = {"django": DjangoShop, "celery": CeleryShop, "sqlalchemy": SqlalchemyShop}


def main(framework, role, settings):
    logging.disable(logging.ERROR)
    shop = SHOPS[framework](json.loads(settings))
    if role in ("setup", "relay"):
        getattr(shop, role)()
        return
    while True:
        try:
            shop.order(int(role), str(uuid.uuid4()), random.random() < 0.2)
            time.sleep(WAIT)
        except Exception:
            # The database is away.
            shop.lost()
            time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
