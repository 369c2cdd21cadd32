"""The npm packages: one for each platform with the programs, and `dq-server`, which depends on that of the platform."""

import json
from pathlib import Path

from scripts.bundle.files import File, Files, write_tar

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "packaging/server/npm"
PROCESSORS = {"amd64": "x64", "arm64": "arm64"}
PLATFORMS = [(arch, libc) for arch in PROCESSORS for libc in ("glibc", "musl")]


def name_of(arch: str, libc: str) -> str:
    """The name of a platform's package."""
    return f"dq-server-linux-{PROCESSORS[arch]}" + ("-musl" if libc == "musl" else "")


def write_platform(where: Path, version: str, arch: str, libc: str, tree: Files, epoch: int) -> Path:
    """Writes the package of a platform. npm installs it only there."""
    description = {
        "name": name_of(arch, libc),
        "version": version,
        "description": "The programs of dq-server for Linux",
        "license": "MIT AND BSD-3-Clause",
        "os": ["linux"],
        "cpu": [PROCESSORS[arch]],
        "libc": [libc],
        "files": ["bin", "libexec", "LICENCES.txt", "sbom.cdx.json"],
    }
    wanted = ("bin/dq", "libexec/", "LICENSE", "LICENCES.txt", "sbom.cdx.json")
    files = {name: file for name, file in tree.items() if name.startswith(wanted)}
    files["README.md"] = File.text(f"The programs of [dq-server](https://www.npmjs.com/package/dq-server) for Linux, {arch}, {libc}.\n")
    return _write(where, description, files, epoch)


def write_main(where: Path, version: str, epoch: int) -> Path:
    """Writes `dq-server`, which has no programs itself."""
    description = json.loads((SOURCE / "package.json").read_text())
    description["version"] = version
    description["optionalDependencies"] = {name_of(*platform): version for platform in PLATFORMS}
    files = {str(file.relative_to(SOURCE)): File.read(file, file.name == "dq.js") for file in SOURCE.rglob("*") if file.is_file()}
    files["README.md"] = File.read(ROOT / "packaging/server/README.md")
    files["LICENSE"] = File.read(ROOT / "LICENSE")
    return _write(where, description, files, epoch)


def _write(where: Path, description: dict, files: Files, epoch: int) -> Path:
    files = {**files, "package.json": File.text(json.dumps(description, indent=2) + "\n")}
    path = where / f"{description['name']}-{description['version']}.tgz"
    write_tar(path, {f"package/{name}": file for name, file in files.items()}, epoch)
    return path
