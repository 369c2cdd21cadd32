"""Reads the append-only file of a server."""

from pathlib import Path


def increments(server) -> list[Path]:
    """The incremental files of the newest manifest, oldest first."""
    folder = server.dir / "appendonlydir"
    [manifest] = folder.glob("*.manifest")
    names = [line.split() for line in manifest.read_text().splitlines()]
    return [folder / n[1] for n in names if n[5] == "i"]


def commands(server) -> list[list[bytes]]:
    """Every command of the incremental files, without SELECT and timestamps."""
    found = []
    for path in increments(server):
        data = path.read_bytes()
        at = 0
        while at < len(data):
            end = data.index(b"\r\n", at)
            if data[at : at + 1] == b"#":
                at = end + 2
                continue
            args = []
            count = int(data[at + 1 : end])
            at = end + 2
            for _ in range(count):
                end = data.index(b"\r\n", at)
                size = int(data[at + 1 : end])
                args.append(data[end + 2 : end + 2 + size])
                at = end + 2 + size + 2
            if args[0].upper() != b"SELECT":
                found.append(args)
    return found
