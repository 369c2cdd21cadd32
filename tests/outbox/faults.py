"""python -m tests.outbox.faults --kills 300: shops commit orders and send messages, while all that takes part is killed.

Three shops write orders into a real database and send a message for each through the outbox of a framework. Two relays send
what the shops leave. Shops, relays, the server and the database are killed (SIGKILL) at random moments and started again. At
the end the messages that a worker got must be those of the committed orders: none lost, none sent twice, none of a
transaction or savepoint that was rolled back, and in the order of each shop. The exit status is 1 if not. `--own` does the
same with what Celery and Laravel themselves do after a commit.
"""

import argparse
import base64
import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import redis

from tests.harness.databases import DATABASES
from tests.harness.server import ROOT, Server, wait_for

sys.path.insert(0, str(ROOT / "clients/python/src"))
from dqueue import Message, Queue, Worker, connect  # noqa: E402

FRAMEWORKS = ("django", "sqlalchemy", "laravel", "symfony")
OWN = ("celery", "laravel-own")
SHOPS, RELAYS = 3, 2
QUEUE = "orders"
ENV = {**os.environ, "PYTHONPATH": f"{ROOT / 'clients/python/src'}:{ROOT}"}


class Run:
    """One framework with one database."""

    def __init__(self, framework, database, seed):
        self.framework, self.random = framework, random.Random(seed)
        self.is_own = framework in OWN
        self.database = DATABASES[database]().start()
        self.server = Server(appendonly="yes").start()
        self.queue = f"dq:{QUEUE}" if framework == "laravel" else QUEUE
        settings = {**self.database.settings, "database": database, "redis": f"redis://127.0.0.1:{self.server.port}", "queue": QUEUE}
        self.settings = json.dumps(settings)
        self.programs = {}
        self.deliveries = []
        """Token, shop and receipt of each first delivery."""
        self.killed = Counter()
        self.engine = None

    def command(self, role):
        python = [sys.executable, "-m", "tests.outbox.app"]
        runs = ["php", str(ROOT / "tests/outbox/app.php")] if self.framework in ("laravel", "symfony", "laravel-own") else python
        return [*runs, self.framework, role, self.settings]

    def live(self, kills, pause):
        """Makes the shops, kills what takes part this often, and waits until all is quiet."""
        subprocess.run(self.command("setup"), cwd=ROOT, env=ENV, check=True)
        roles = [str(number) for number in range(SHOPS)] + ([] if self.is_own else ["relay"] + [f"relay{n}" for n in range(1, RELAYS)])
        for role in roles:
            self.start_role(role)
        worker, thread = self.consume()
        try:
            wait_for(lambda: self.count() > 5, 170, "the first orders")
            targets = ["shop"] * 4 + ["relay"] * 2 * (not self.is_own) + ["server"] * 2 + ["database"] * 2 * (self.database.port is not None)
            for _ in range(kills):
                # Some shop has begun again since the last kill, however slow the machine is.
                before = self.count()
                wait_for(lambda before=before: self.count() > before, 170, "another order")
                time.sleep(self.random.uniform(*pause))
                self.kill(self.random.choice(targets))
            for role in [role for role in roles if not role.startswith("relay")]:
                self.programs.pop(role).kill()
            if not self.is_own:
                wait_for(lambda: self.count("dq_outbox") == 0, 170, "the end of the rows")
                client = connect(f"redis://127.0.0.1:{self.server.port}")
                wait_for(lambda: Queue(client, self.queue).len() == 0, 170, "the end of the messages")
        finally:
            if worker is not None:
                worker.stop()
                thread.join()
        return self.verdict()

    def start_role(self, role):
        command = self.command("relay" if role.startswith("relay") else role)
        self.programs[role] = subprocess.Popen(command, cwd=ROOT, env=ENV, stdout=subprocess.DEVNULL)

    def kill(self, target):
        self.killed[target] += 1
        if target == "server":
            self.server.kill9()
            time.sleep(self.random.choice((0, 0, 0.5)))
            self.server.start()
        elif target == "database":
            self.database.kill9()
            time.sleep(self.random.choice((0, 0, 0.5)))
            self.database.start()
        else:
            roles = [role for role in self.programs if role.startswith("relay") == (target == "relay")]
            role = self.random.choice(roles)
            self.programs[role].send_signal(signal.SIGKILL)
            self.programs[role].wait()
            self.start_role(role)

    def consume(self):
        if self.is_own:
            return None, None
        lock = threading.Lock()
        # A client of its own: the worker waits out the kills of the server.
        worker = Worker(Queue(connect(f"redis://127.0.0.1:{self.server.port}"), self.queue), concurrency=4, lease=5000)

        @worker.handler()
        def record(message: Message) -> None:
            if message.attempt == 1:
                with lock:
                    self.deliveries.append((self.token(message.payload), message.group, message.receipt))

        thread = threading.Thread(target=worker.run, kwargs={"signals": False})
        thread.start()
        return worker, thread

    def token(self, payload):
        """Reads the token of an order from the payload of its message, which frameworks pack."""
        text = payload.decode(errors="replace")
        if self.framework == "laravel":
            text = json.loads(text)["data"]["command"]
        if self.framework in ("laravel", "symfony"):
            text = text.replace("\\", "").split('"token"', 1)[1].split('"')[1]
        return text

    def execute(self, sql):
        import sqlalchemy

        if self.engine is None:
            self.engine = sqlalchemy.create_engine(self.database.sqlalchemy_url, poolclass=sqlalchemy.NullPool)
        with self.engine.connect() as connection:
            return connection.execute(sqlalchemy.text(sql)).all()

    def count(self, table="orders"):
        return self.execute(f"SELECT COUNT(*) FROM {table}")[0][0]

    def verdict(self):
        """Returns what is right and wrong: numbers by name."""
        orders = self.execute("SELECT shop, n, token FROM orders ORDER BY shop, n")
        if self.is_own:
            self.read_list()
        # A message that is delivered once more after a lost reply has the same receipt.
        unique = {(token, receipt): group for token, group, receipt in self.deliveries}
        times = Counter(token for token, _ in unique)
        tokens = {token for _, _, token in orders}
        out_of_order = 0
        for shop in {shop for shop, _, _ in orders}:
            place = {token: n for one, n, token in orders if one == shop}
            got = [place[token] for token, *_ in self.deliveries if token in place]
            out_of_order += sum(after < before for before, after in zip(got, got[1:], strict=False))
        return {
            "orders": len(orders),
            "lost": len(tokens - times.keys()),
            "twice": sum(count > 1 for count in times.values()),
            "of a rollback": len(times.keys() - tokens),
            "out of order": out_of_order,
            **{f"{target} killed": count for target, count in sorted(self.killed.items())},
        }

    def read_list(self):
        """Reads the list in which Celery or Laravel keep their messages."""
        client = redis.Redis(port=self.server.port)
        # kombu adds at the left end.
        items = client.lrange(f"queues:{QUEUE}", 0, -1) + client.lrange(QUEUE, 0, -1)[::-1]
        for number, item in enumerate(items):
            body = json.loads(item)
            if self.framework == "celery":
                token = json.loads(base64.b64decode(body["body"]))[0][0]
            else:
                token = body["data"]["command"].replace("\\", "").split('"token"', 1)[1].split('"')[1]
            self.deliveries.append((token, None, number))

    def close(self):
        for program in self.programs.values():
            program.kill()
            program.wait()
        self.server.close()
        self.database.close()


def run(frameworks, databases, kills, seed, pause=(0.0, 0.4)):
    """Yields framework, database and the verdict. The kills are divided among them."""
    pairs = [(framework, database) for framework in frameworks for database in databases]
    for number, (framework, database) in enumerate(pairs):
        one = Run(framework, database, seed + number)
        try:
            yield framework, database, one.live(kills // len(pairs) + (number < kills % len(pairs)), pause)
        finally:
            one.close()


def has_php_database(package):
    """Returns whether PHP has this package of Debian, and the drivers of all databases."""
    modules = subprocess.run(["php", "-m"], capture_output=True, text=True).stdout.split()
    return {"pdo_pgsql", "pdo_mysql", "pdo_sqlite", "redis"} <= set(modules) and os.path.isdir(f"/usr/share/php/{package}")


def is_right(verdict):
    return not any(verdict[wrong] for wrong in ("lost", "twice", "of a rollback", "out of order"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--frameworks", nargs="+", default=list(FRAMEWORKS), choices=[*FRAMEWORKS, *OWN])
    parser.add_argument("--own", action="store_true", help="what Celery and Laravel themselves do after a commit")
    parser.add_argument("--databases", nargs="+", default=list(DATABASES), choices=list(DATABASES))
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    logging.disable()
    print(f"seed {given.seed}", flush=True)
    failed = False
    for framework, database, verdict in run(OWN if given.own else given.frameworks, given.databases, given.kills, given.seed):
        failed |= not is_right(verdict)
        print(f"{framework:12} {database:11}", ", ".join(f"{name} {count}" for name, count in verdict.items()), flush=True)
    return failed and not given.own


if __name__ == "__main__":
    sys.exit(main())
