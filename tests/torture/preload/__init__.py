"""Libraries for LD_PRELOAD, compiled when a test first asks for one."""

import mmap
import os
import random
import struct
from pathlib import Path

from tests.harness.compiled import compiled

_SOURCES = Path(__file__).parent
# Inode and synced length of a number of files; see power.c.
_SLOTS = 1024
_SLOT = struct.Struct("=QQ")
# After the slots: whether syncs are to hang, and whether one does.
_FAILURE = struct.Struct("=QQ")
_FAILURE_AT = _SLOTS * _SLOT.size


def library(name: str) -> Path:
    """The compiled library."""
    return compiled(_SOURCES / f"{name}.c", "-shared", "-fPIC", "-ldl")


class Power:
    """The bytes of a server's files that have been synced, and the failure that takes the rest."""

    def __init__(self, table: Path):
        self.table = table
        table.write_bytes(bytes(_FAILURE_AT + _FAILURE.size))
        self.env = {"LD_PRELOAD": str(library("power")), "POWER_TABLE": str(table)}

    def approach(self) -> None:
        """From now on no sync of the server ends: the power fails during one."""
        with open(self.table, "r+b") as file:
            file.seek(_FAILURE_AT)
            file.write(_FAILURE.pack(1, 0))

    def struck(self) -> bool:
        """Whether a sync has stood still since `approach`: kill the server then, and let the power `fail`."""
        near, struck = _FAILURE.unpack_from(self.table.read_bytes(), _FAILURE_AT)
        return bool(near and struck)

    def fail(self, folder: Path, rng: random.Random) -> int:
        """Cuts the files of a dead server; returns how many bytes are gone.

        Half of the time nothing past the last sync is left, else the disk had come to some place behind it.
        """
        table = bytearray(self.table.read_bytes())
        _FAILURE.pack_into(table, _FAILURE_AT, 0, 0)
        synced = {inode: size for inode, size in _SLOT.iter_unpack(table[:_FAILURE_AT]) if inode}
        gone = 0
        for path in folder.rglob("*"):
            if not path.is_file() or path.stat().st_ino not in synced:
                continue
            size, safe = path.stat().st_size, synced[path.stat().st_ino]
            left = safe if rng.random() < 0.5 else rng.randint(min(safe, size), size)
            if left < size:
                os.truncate(path, left)
                gone += size - left
            # Bytes that have outlived one failure outlive the next.
            synced[path.stat().st_ino] = left
        for at in range(0, _FAILURE_AT, _SLOT.size):
            inode, _ = _SLOT.unpack_from(table, at)
            if inode:
                _SLOT.pack_into(table, at, inode, synced[inode])
        self.table.write_bytes(table)
        return gone


class WallClock:
    """The wall clock of one server; its lead over the machine's clock, in ms."""

    def __init__(self, path: Path):
        path.write_bytes(bytes(8))
        self.env = {"LD_PRELOAD": str(library("clock")), "CLOCK_OFFSET": str(path)}
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8)

    @property
    def offset(self) -> int:
        return struct.unpack("=q", self._map)[0]

    def step(self, ms: int) -> None:
        """Sets the clock forward, or back where ms is negative."""
        self._map[:] = struct.pack("=q", self.offset + ms)
