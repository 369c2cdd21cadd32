"""clients/python with older and newer releases of redis-py and of the frameworks from PyPI, each set in a separate
environment.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.harness.server import ROOT

TESTS = "clients/python/tests"
# Environments stay from one run to the next.
PLACE = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "versions"
COMMON = ("pytest==9.2.0", "pytest-timeout==2.4.0", "pytest-xdist==3.8.0", "PyYAML==6.0.3")


@dataclass(frozen=True)
class Row:
    """A set of releases. `tests` are files below clients/python/tests, `faults` names a driver of the matrix of faults."""

    releases: tuple[str, ...]
    tests: tuple[str, ...]
    faults: str = ""
    python: str = ""
    """The Python it needs, such as 3.12. The one that runs this by default."""
    leaves_out: str = ""
    """The tests that do not hold with these releases. The page of the driver says what that means."""


CORE = ("test_conformance.py", "test_queue.py", "test_worker.py", "test_asyncio.py", "test_family.py", "test_topologies.py")
# Before 5.6 Celery forgets the tasks that run when it loses its connection, and a stop can wait for them.
CELERY_FORGETS = "test_stop and running"
CELERY, DRAMATIQ, TASKIQ, DJANGO = ("kombu_transport",), ("dramatiq_broker",), ("test_taskiq.py",), ("test_django.py",)


def _celery(release: str, *others: str, python: str = "") -> Row:
    leaves_out = CELERY_FORGETS if release in ("5.4", "5.5") else ""
    return Row((f"celery=={release}.*", f"kombu[redis]=={release}.*", *others), CELERY, "celery", python, leaves_out)


ROWS = [
    *(Row((f"redis=={release}",), CORE) for release in ("5.0.1", "5.3.*", "6.4.*", "7.4.*", "8.0.*", "8.1.*")),
    *(_celery(release) for release in ("5.4", "5.5", "5.6", "5.7")),
    _celery("5.4", "redis==5.0.1"),
    _celery("5.7", python="3.13"),
    *(Row((f"dramatiq=={release}", "redis"), DRAMATIQ, "dramatiq") for release in ("1.17.0", "1.18.*", "2.0.*", "2.1.*", "2.2.*")),
    # Schedules by an interval came with 0.12.
    Row(("taskiq==0.11.20", "redis"), TASKIQ, "taskiq", leaves_out="fires_schedules or example"),
    *(Row((f"taskiq=={release}", "redis"), TASKIQ, "taskiq") for release in ("0.12.*", "0.13.*")),
    Row(("django==5.2.*", "django-tasks==0.12.*", "redis"), DJANGO, "django"),
    *(Row((f"django=={release}.*", "redis"), DJANGO, "django", "3.12") for release in ("6.0", "6.1")),
]
SHORT = [ROWS[0], _celery("5.4"), *(row for row in ROWS if row.releases[0] in ("dramatiq==1.17.0", "taskiq==0.11.20"))]
# The short form of the matrix of faults: a worker that loses its connection lives, and stops.
FAULTS = "test_idle and cut or test_running and cut or test_stop and cut or test_reserved and cut or test_ends"


def rows(short: bool, server, cluster) -> Iterator[tuple[str, str | None]]:
    """Yields each set of releases with its failure, or None."""
    del server, cluster  # The tests start their own.
    for row in SHORT if short else ROWS:
        interpreter = _interpreter(row.python)
        if interpreter is None:
            yield f"{', '.join(row.releases)} (Python {row.python})", "NOT RUN: there is no such Python here"
            continue
        folder, problem = _environment(row, interpreter)
        problem = problem or _tests(folder, row, short)
        yield _installed(folder, row) + (f", without: {row.leaves_out}" if row.leaves_out else ""), problem


def _interpreter(version: str) -> str | None:
    """Returns a Python of this version, also where it is only installed for pyenv."""
    if not version or version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    places = [shutil.which(f"python{version}"), *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))]
    for place in filter(None, places):
        if subprocess.run([place, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return str(place)
    return None


def _environment(row: Row, interpreter: str) -> tuple[Path, str | None]:
    name = "-".join(["py" + (row.python or "").replace(".", ""), *row.releases])
    folder = PLACE / "".join(letter if letter.isalnum() or letter in ".-" else "_" for letter in name)
    done = folder / "installed"
    if done.exists():
        return folder, None
    shutil.rmtree(folder, ignore_errors=True)
    python = folder / "bin/python"
    problem = _run([interpreter, "-m", "venv", str(folder)])
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *COMMON, *row.releases]
    problem = problem or _run(install)
    if problem is None:
        done.touch()
    return folder, problem


def _installed(folder: Path, row: Row) -> str:
    """Returns the releases that the ranges stand for."""
    names = [release.split("[")[0].split("=")[0] for release in row.releases]
    names += [] if "redis" in names else ["redis"]
    ask = "import sys, importlib.metadata as m\nprint(', '.join(f'{name} {m.version(name)}' for name in sys.argv[1:]))"
    done = subprocess.run([folder / "bin/python", "-c", ask, *names], capture_output=True, text=True)
    return (done.stdout.strip() or ", ".join(row.releases)) + (f" (Python {row.python})" if row.python else "")


def _tests(folder: Path, row: Row, short: bool) -> str | None:
    pytest = [str(folder / "bin/python"), "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider"]
    without = ["-k", f"not ({row.leaves_out})"] if row.leaves_out else []
    problem = _run([*pytest, *(f"{TESTS}/{test}" for test in row.tests), *without])
    if problem is None and row.faults and not short:
        chosen = f"({FAULTS}) and not ({row.leaves_out})" if row.leaves_out else FAULTS
        files = sorted(ROOT.glob(f"{TESTS}/faults/test_faults_{row.faults}*.py"))
        problem = _run([*pytest, *map(str, files), "-k", chosen])
    return problem


def _run(words: list[str]) -> str | None:
    """Runs a program. Returns what it has printed if it fails."""
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    return None if done.returncode == 0 else done.stdout + done.stderr
