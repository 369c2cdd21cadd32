"""Packs bundles: python3 -m scripts.bundle --version 0.1.0 --epoch SECONDS --dist DIR ARCH-LIBC=PROGRAMS...

PROGRAMS is a directory with dq, libdq.so, valkey-server, valkey-cli and the licences of Valkey.
"""

import argparse
import re
import subprocess
from pathlib import Path

from scripts.bundle import licences, npm, wheel
from scripts.bundle.files import File, Files, write_tar

ROOT = Path(__file__).resolve().parents[2]
RUST = {"amd64": "x86_64-unknown-linux-", "arm64": "aarch64-unknown-linux-"}
LIMIT = 20_000_000


def tree_of(programs: Path, arch: str, libc: str, version: str) -> Files:
    """The files of a bundle, as the tar.gz has them."""
    engine = re.search(r"^VERSION=(.*)$", (ROOT / "packaging/server/engine").read_text(), re.MULTILINE)[1]
    rust = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    target = RUST[arch] + {"glibc": "gnu", "musl": "musl"}[libc]
    parts = licences.everything(programs, target, engine, rust)
    own = File.read(ROOT / "LICENSE")
    return {
        "bin/dq": File.read(programs / "dq", True),
        "libexec/dq/libdq.so": File.read(programs / "libdq.so", True),
        "libexec/dq/valkey-cli": File.read(programs / "valkey-cli", True),
        "libexec/dq/valkey-server": File.read(programs / "valkey-server", True),
        "LICENSE": own,
        "LICENCES.txt": File.text(licences.text(parts, own.data.decode())),
        "README.md": File.read(ROOT / "packaging/server/README.md"),
        "sbom.cdx.json": File.text(licences.sbom(parts, version)),
    }


def write_archive(where: Path, version: str, arch: str, libc: str, tree: Files, epoch: int) -> Path:
    """Writes the tar.gz, with the checksums of its files."""
    name = f"dq-server-{version}-linux-{arch}" + ("-musl" if libc == "musl" else "")
    sums = "".join(f"{file.checksum().hexdigest()}  {path}\n" for path, file in sorted(tree.items()))
    files = {f"{name}/{path}": file for path, file in {**tree, "SHA256SUMS": File.text(sums)}.items()}
    path = where / f"{name}.tar.gz"
    write_tar(path, files, epoch)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", required=True)
    parser.add_argument("--epoch", required=True, type=int, help="the time of all files, in Unix seconds")
    parser.add_argument("--dist", required=True, type=Path)
    parser.add_argument("bundles", nargs="+", metavar="ARCH-LIBC=PROGRAMS")
    told = parser.parse_args()
    written = [npm.write_main(told.dist, told.version, told.epoch)]
    for bundle in told.bundles:
        platform, programs = bundle.split("=", 1)
        arch, libc = platform.split("-")
        tree = tree_of(Path(programs), arch, libc, told.version)
        for write in (write_archive, wheel.write, npm.write_platform):
            written.append(write(told.dist, told.version, arch, libc, tree, told.epoch))
    for path in written:
        size = path.stat().st_size
        print(f"{size / 1e6:6.1f} MB  {path.name}")
        if size > LIMIT:
            raise SystemExit(f"error: {path} is larger than {LIMIT / 1e6:.0f} MB")


main()
