"""The C parts of tests, compiled when they are first asked for."""

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path


def compiled(source: Path, *flags: str) -> Path:
    """The file that the C compiler makes of a source with these flags; compiled again when either has changed."""
    version = hashlib.sha256(source.read_bytes() + repr(flags).encode()).hexdigest()[:16]
    built = Path(tempfile.gettempdir()) / f"dq-{os.getuid()}-{source.stem}-{version}"
    if not built.exists():
        made = built.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", "-O2", "-Wall", "-o", made, source, *flags], check=True)
        made.rename(built)
    return built
