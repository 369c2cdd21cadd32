"""Real databases for the tests of outboxes: PostgreSQL and MariaDB from Debian, each with its data in its own directory, and
SQLite. None of them is a service of the system.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tests.harness.optional import need
from tests.harness.server import ROOT, free_port, wait_for

UNPACKED = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "postgresql"


class Sqlite:
    """A file, which no process serves. So there is nothing to kill."""

    name, driver = "SQLite", "sqlite"
    port = None

    def __init__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="dq-db-"))
        # Programs of other users than root (PostgreSQL) come into it.
        self.dir.chmod(0o755)
        # Laravel wants the file to be there.
        (self.dir / "shop.sqlite").touch()
        self.database = str(self.dir / "shop.sqlite")

    @property
    def sqlalchemy_url(self) -> str:
        return f"sqlite:///{self.database}"

    @property
    def django(self) -> dict:
        options = {"timeout": 30, "transaction_mode": "IMMEDIATE"}
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": self.database, "OPTIONS": options}

    @property
    def laravel(self) -> dict:
        return {"driver": "sqlite", "database": self.database, "foreign_key_constraints": True}

    @property
    def doctrine(self) -> dict:
        return {"driver": "pdo_sqlite", "path": self.database}

    @property
    def settings(self) -> dict:
        """How each framework names this database."""
        return {"sqlalchemy": self.sqlalchemy_url, "django": self.django, "laravel": self.laravel, "doctrine": self.doctrine}

    def start(self):
        return self

    def kill9(self) -> None:
        """Nothing is killed."""

    def close(self) -> None:
        shutil.rmtree(self.dir, ignore_errors=True)


class _Served(Sqlite):
    """A server of a database, in its own session, so that all of its processes are killed together."""

    user = "shop"

    def __init__(self):
        super().__init__()
        self.port = free_port()
        self.database = "shop"
        self.process = None
        self._make()

    def start(self):
        with (self.dir / "server.log").open("ab") as log:
            self.process = subprocess.Popen(self._command(), stdout=log, stderr=log, start_new_session=True, **self._as())
        wait_for(self._answers, 60, f"{self.name} on port {self.port}")
        return self

    def kill9(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        # The kernel gives the memory and the port free when the last of them is gone.
        wait_for(lambda: not self._listens(), 20, "the end of the database")

    def close(self) -> None:
        if self.process is not None:
            self.kill9()
        super().close()

    def _as(self) -> dict:
        return {}

    @property
    def laravel(self):
        login = {"username": self.user, "password": "", "charset": "utf8mb4" if self.driver == "mysql" else "utf8"}
        return {"driver": self.driver, "host": "127.0.0.1", "port": self.port, "database": "shop", "prefix": "", **login}

    @property
    def doctrine(self):
        server = {"host": "127.0.0.1", "port": self.port, "dbname": "shop", "user": self.user, "password": ""}
        return {"driver": f"pdo_{self.driver}", **server, **({"charset": "utf8mb4"} if self.driver == "mysql" else {})}

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _answers(self) -> bool:
        assert self.process.poll() is None, (self.dir / "server.log").read_text()[-3000:]
        try:
            self._ask()
        except Exception:
            time.sleep(0.05)
            return False
        return True


class PostgreSQL(_Served):
    name, driver = "PostgreSQL", "pgsql"

    @staticmethod
    def bin() -> Path | None:
        found = sorted(Path("/").glob("usr/lib/postgresql/*/bin")) + sorted(UNPACKED.glob("usr/lib/postgresql/*/bin"))
        return next((one for one in reversed(found) if (one / "initdb").exists()), None)

    def _make(self):
        need(self.bin(), "PostgreSQL")
        if os.getuid() == 0:
            shutil.chown(self.dir, "nobody", "nogroup")
        words = [self.bin() / "initdb", "-D", self.dir / "data", "-U", self.user, "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
        subprocess.run(words, check=True, capture_output=True, **self._as())

    def _as(self):
        # PostgreSQL refuses to be root's.
        return {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}

    def _command(self):
        # The system holds all that was written: the machine itself does not fail.
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": self.dir, "port": self.port, "fsync": "off"}
        flags = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [self.bin() / "postgres", "-D", self.dir / "data", *flags]

    def _ask(self):
        import psycopg

        with psycopg.connect(host="127.0.0.1", port=self.port, user=self.user, dbname="postgres", autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = 'shop'").fetchone():
                connection.execute("CREATE DATABASE shop")

    @property
    def sqlalchemy_url(self):
        return f"postgresql+psycopg://{self.user}@127.0.0.1:{self.port}/shop"

    @property
    def django(self):
        server = {"HOST": "127.0.0.1", "PORT": self.port, "USER": self.user}
        return {"ENGINE": "django.db.backends.postgresql", "NAME": "shop", **server}


class MariaDB(_Served):
    name, driver = "MariaDB", "mysql"

    def _make(self):
        need(self._program(), "MariaDB")
        # Without tables of rights, which --skip-grant-tables does not ask for, an empty directory is enough. A server that is
        # killed while it fills it would not start again.
        (self.dir / "data").mkdir()
        self.start()
        self.process.terminate()
        self.process.wait()

    @staticmethod
    def _program():
        return shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin")

    @staticmethod
    def _root():
        return ["--user=root"] if os.getuid() == 0 else []

    def _command(self):
        flags = ["--bind-address=127.0.0.1", f"--port={self.port}", f"--socket={self.dir / 'socket'}", "--skip-grant-tables"]
        # The system holds all that was written: the machine itself does not fail.
        flags += ["--skip-networking=0", "--innodb-flush-log-at-trx-commit=2", "--innodb-use-native-aio=0", "--innodb-buffer-pool-size=32M"]
        return [self._program(), "--no-defaults", f"--datadir={self.dir / 'data'}", *flags, *self._root()]

    def _ask(self):
        import pymysql

        with pymysql.connect(host="127.0.0.1", port=self.port, user=self.user) as connection:
            connection.cursor().execute("CREATE DATABASE IF NOT EXISTS shop CHARACTER SET utf8mb4")

    @property
    def sqlalchemy_url(self):
        return f"mysql+pymysql://{self.user}@127.0.0.1:{self.port}/shop"

    @property
    def django(self):
        server = {"HOST": "127.0.0.1", "PORT": self.port, "USER": self.user}
        return {"ENGINE": "django.db.backends.mysql", "NAME": "shop", **server}


DATABASES = {"postgresql": PostgreSQL, "mariadb": MariaDB, "sqlite": Sqlite}
