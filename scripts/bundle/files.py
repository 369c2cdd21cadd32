"""Files to be packed, and archives of them that are the same in every run."""

import gzip
import hashlib
import io
import os
import tarfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

# As small as can be; tests of the rest save time with less.
LEVEL = int(os.environ.get("COMPRESSION", 9))


@dataclass
class File:
    """The contents of a file, and whether it is a program."""

    data: bytes
    program: bool = False

    @classmethod
    def read(cls, path: Path, program: bool = False) -> "File":
        return cls(path.read_bytes(), program)

    @classmethod
    def text(cls, text: str) -> "File":
        return cls(text.encode())

    @property
    def mode(self) -> int:
        # Redis and Valkey refuse a module that is not executable, so a library counts as a program, too.
        return 0o755 if self.program else 0o644

    def checksum(self) -> "hashlib._Hash":
        return hashlib.sha256(self.data)


Files = dict[str, File]


def write_tar(path: Path, files: Files, epoch: int) -> None:
    """Writes a tar.gz."""
    with open(path, "wb") as out, gzip.GzipFile("", "wb", LEVEL, out, mtime=0) as packed:
        with tarfile.open(mode="w", fileobj=packed, format=tarfile.USTAR_FORMAT) as archive:
            for name, file in sorted(files.items()):
                info = tarfile.TarInfo(name)
                info.size, info.mode, info.mtime = len(file.data), file.mode, epoch
                archive.addfile(info, io.BytesIO(file.data))


def write_zip(path: Path, files: Files, epoch: int) -> None:
    """Writes a zip. Its files are in the order of `files`, because the last one of a wheel must be its RECORD."""
    # A zip cannot hold a time before 1980.
    moment = time.gmtime(max(epoch, 315532800))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for name, file in files.items():
            info = zipfile.ZipInfo(name, moment)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, so that the mode counts.
            info.external_attr = (0o100000 | file.mode) << 16
            archive.writestr(info, file.data)
