"""Programs that only some tests need. `make setup-optional` gets it on Debian; without it those tests are skipped,
and say so.
"""

import shutil

import pytest


def lacking(what: str) -> str:
    """The reason why a test is skipped that needs this."""
    return f"{what} is not here: make setup-optional gets it"


def need(there, what: str) -> None:
    """Skips the test unless this program is installed."""
    if not there:
        pytest.skip(lacking(what))


def needs(program: str):
    """The mark of tests that need a program."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=lacking(program))
