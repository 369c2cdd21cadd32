"""The contenders: how the worker and the producer of each are started, and what is special about it."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PLACE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "workers"
"""The folder into which `install.sh` puts the peers."""
PYTHON = PLACE / "py/bin/python"

OURS, PEER, BARE = "dq", "peer", "bare"


@dataclass(frozen=True, eq=False)
class Contender:
    """A worker and a producer.

    `speeds` are the concurrencies that it has, and about how many jobs a second it does at each, which says how many it is
    given.
    """

    name: str
    language: str
    kind: str
    work: tuple
    send: tuple
    speeds: dict
    begins_itself: bool = False
    """Whether the worker itself reports its beginning, because it fetches all jobs before the first."""
    needs: str = ""
    """A folder of Debian's that it needs."""

    def is_there(self):
        """Returns whether the packages that it needs are installed."""
        program, script = self.work[:2]
        is_installed = shutil.which(str(program)) and (isinstance(script, str) or script.exists())
        return bool(is_installed) and (not self.needs or Path(self.needs).exists())


def _python(name, kind, script, speeds, sender=None):
    """A contender in Python. `sender` is the script of the producer if it is another one."""
    python = PLACE / "py-arq/bin/python" if script == "with_arq" else PYTHON
    run = (python, HERE / "python" / f"{script}.py")
    send = (PYTHON, HERE / "python" / f"{sender}.py") if sender else run
    return Contender(name, "Python", kind, (*run, "work"), (*send, "send"), speeds)


def _node(name, kind, script, speeds, sender=None):
    # The program is beside the packages, where Node finds them.
    run, send = (("node", PLACE / "node" / f"{one}.mjs") for one in (script, sender or script))
    return Contender(name, "Node", kind, (*run, "work"), (*send, "send"), speeds)


def _php(name, kind, script, speeds, sender=None, **options):
    run, send = (("php", HERE / "php" / f"{one}.php") for one in (script, sender or script))
    return Contender(name, "PHP", kind, (*run, "work"), (*send, "send"), speeds, **options)


def _go(name, kind, word, speeds, sender=None, **options):
    program = PLACE / "go/workers"
    return Contender(
        name,
        "Go",
        kind,
        (program, word, "work"),
        (program, sender or word, "send"),
        speeds,
        **options,
    )


def _each(one, ten, hundred):
    return {1: one, 10: ten, 100: hundred}


CONTENDERS = [
    _python("dq, threads", OURS, "dq_threads", _each(5_000, 8_000, 8_000)),
    _python(
        "dq, asyncio",
        OURS,
        "dq_asyncio",
        _each(2_500, 8_000, 8_000),
        sender="dq_threads",
    ),
    _python("Celery", PEER, "with_celery", _each(600, 600, 600)),
    _python("Dramatiq", PEER, "with_dramatiq", _each(1_000, 1_000, 1_000)),
    _python("RQ", PEER, "with_rq", {1: 250}),
    # At a concurrency of 1, arq looks for the next job twice a second.
    _python("arq", PEER, "with_arq", _each(5, 300, 700)),
    _python("taskiq", PEER, "with_taskiq", _each(1_500, 2_500, 2_500)),
    _python(
        "bare loop",
        BARE,
        "bare_threads",
        _each(8_000, 40_000, 100_000),
        sender="dq_threads",
    ),
    _python(
        "bare loop, asyncio",
        BARE,
        "bare_asyncio",
        _each(3_000, 20_000, 60_000),
        sender="dq_threads",
    ),
    _node("dq", OURS, "dq", _each(5_000, 20_000, 50_000)),
    _node("BullMQ", PEER, "bullmq", _each(2_000, 5_000, 6_000)),
    _node("bare loop", BARE, "bare", _each(6_000, 30_000, 70_000), sender="dq"),
    _php("dq", OURS, "dq", _each(6_000, 30_000, 60_000)),
    _php("Laravel", PEER, "laravel", {1: 1_500}, needs="/usr/share/php/Illuminate/Queue"),
    _php(
        "Symfony",
        PEER,
        "symfony",
        {1: 3_000},
        needs="/usr/share/php/Symfony/Component/Messenger",
    ),
    _php("bare loop", BARE, "bare", _each(10_000, 60_000, 80_000), sender="dq"),
    _go("dq", OURS, "dq", _each(7_000, 30_000, 70_000)),
    _go("delayqueue", PEER, "delayqueue", _each(1_000, 1_000, 1_000), begins_itself=True),
    _go("bare loop", BARE, "bare", _each(12_000, 60_000, 100_000), sender="dq"),
]
