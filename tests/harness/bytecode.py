"""The bytecode that Python has compiled is kept, also where PYTHONDONTWRITEBYTECODE forbids it: then below target/, where
it is in nobody's way. Otherwise each process of the tests compiles all of them anew, with their assertions, and each program that they start
compiles the Python package."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def keep() -> None:
    """For this process and for all that it starts."""
    if sys.dont_write_bytecode:
        folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "pycache"
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
        sys.dont_write_bytecode = False
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
