"""The wheel dq-server: the programs where pip puts programs, and a small module that finds them."""

import base64
from pathlib import Path

from scripts.bundle.files import File, Files, write_zip

ROOT = Path(__file__).resolve().parents[2]
# The oldest C library for each. scripts/bundle-build.sh checks it, and `auditwheel show` reports it, too.
PLATFORMS = {
    ("amd64", "glibc"): "manylinux_2_31_x86_64",
    ("amd64", "musl"): "musllinux_1_2_x86_64",
    ("arm64", "glibc"): "manylinux_2_31_aarch64",
    ("arm64", "musl"): "musllinux_1_2_aarch64",
}


def write(where: Path, version: str, arch: str, libc: str, tree: Files, epoch: int) -> Path:
    """Writes the wheel of these programs."""
    platform = PLATFORMS[arch, libc]
    info, data = f"dq_server-{version}.dist-info", f"dq_server-{version}.data"
    source = ROOT / "packaging/server/python/dq_server"
    files: Files = {f"dq_server/{file.name}": File.read(file) for file in sorted(source.iterdir()) if file.is_file()}
    for name, file in tree.items():
        if name == "bin/dq":
            files[f"{data}/scripts/dq"] = file
        elif name.startswith("libexec/"):
            files[f"{data}/data/{name}"] = file
    files[f"{info}/METADATA"] = File.text(
        "Metadata-Version: 2.4\nName: dq-server\n"
        f"Version: {version}\n"
        "Summary: A Valkey server with dq, the durable, ordered delay queue, for those who have none and for tests\n"
        "License-Expression: MIT AND BSD-3-Clause\nLicense-File: LICENSE\nLicense-File: LICENCES.txt\n"
        "Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n" + (ROOT / "packaging/server/README.md").read_text()
    )
    files[f"{info}/WHEEL"] = File.text(f"Wheel-Version: 1.0\nGenerator: dq\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n")
    files[f"{info}/licenses/LICENSE"] = tree["LICENSE"]
    files[f"{info}/licenses/LICENCES.txt"] = tree["LICENCES.txt"]
    files[f"{info}/sboms/dq-server.cdx.json"] = tree["sbom.cdx.json"]
    record = f"{info}/RECORD"
    lines = [f"{name},sha256={_sum(file)},{len(file.data)}\n" for name, file in files.items()]
    files[record] = File.text("".join([*lines, f"{record},,\n"]))
    path = where / f"dq_server-{version}-py3-none-{platform}.whl"
    write_zip(path, files, epoch)
    return path


def _sum(file: File) -> str:
    return base64.urlsafe_b64encode(file.checksum().digest()).rstrip(b"=").decode()
