"""The parts of the programs of a bundle, with their licences: the text for people, and a list in the form of
CycloneDX.
"""

import json
import re
import subprocess
from collections import deque
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXTS = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
# The parts of Valkey's own sources, in `deps` and beside its own files.
ENGINE_PARTS = {
    "jemalloc": "BSD-2-Clause",
    "lua": "MIT",
    "hdr_histogram": "BSD-2-Clause OR CC0-1.0",
    "libvalkey": "BSD-3-Clause",
    "linenoise": "BSD-2-Clause",
    "fpconv": "MIT",
}


class Part:
    """A part with a licence that is linked into one of the programs."""

    def __init__(self, name: str, version: str, licence: str, texts: list[str], url: str, patch: str = ""):
        self.name, self.version, self.licence, self.texts, self.url = name, version, licence, texts, url
        # The changes that were made to its sources.
        self.patch = patch


def crates(manifest: Path, target: str) -> list[Part]:
    """The crates that are linked into a program: not those that only build or test it."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    told = subprocess.run([*command, "--manifest-path", manifest], check=True, capture_output=True, text=True).stdout
    told = json.loads(told)
    packages = {package["id"]: package for package in told["packages"]}
    nodes = {node["id"]: node for node in told["resolve"]["nodes"]}
    found, waiting = set(), deque([told["resolve"]["root"]])
    while waiting:
        id = waiting.popleft()
        if id in found or "proc-macro" in (kind for one in packages[id]["targets"] for kind in one["kind"]):
            continue
        found.add(id)
        for dep in nodes[id]["deps"]:
            if any(kind["kind"] is None for kind in dep["dep_kinds"]):
                waiting.append(dep["pkg"])
    return [_crate(packages[id]) for id in found if packages[id]["source"]]


def _crate(package: dict) -> Part:
    place = Path(package["manifest_path"]).parent
    texts = [file.read_text(errors="replace") for file in sorted(place.iterdir()) if file.is_file() and TEXTS.match(file.name)]
    name, version = package["name"], package["version"]
    return Part(name, version, package["license"] or "see its text", texts, f"pkg:cargo/{name}@{version}")


def engine(programs: Path, version: str) -> list[Part]:
    """Valkey and the parts in its sources."""
    own = (programs / "COPYING").read_text()
    patch = (ROOT / "packaging/server/waitaof.patch").read_text()
    parts = [Part("valkey", version, "BSD-3-Clause", [own], f"pkg:github/valkey-io/valkey@{version}", patch)]
    for name, licence in ENGINE_PARTS.items():
        text = programs / "licences" / name
        texts = [text.read_text(errors="replace")] if text.exists() else []
        parts.append(Part(name, f"in valkey {version}", licence, texts, f"pkg:generic/{name}?vendored-in=valkey-{version}"))
    return parts


def rust(version: str) -> Part:
    """The standard library of Rust."""
    return Part("rust-std", version, "MIT OR Apache-2.0", [], f"pkg:generic/rust-std@{version}")


def text(parts: list[Part], own: str) -> str:
    """All licences, each text once."""
    lines = ["The programs in this package, and what is linked into them.", "", "dq: the module and the program dq (MIT)"]
    lines += [f"{part.name} {part.version} ({part.licence})" for part in parts]
    users: dict[str, list[str]] = {own.strip(): ["dq"]}
    for part in parts:
        for one in part.texts:
            users.setdefault(one.strip(), []).append(part.name)
    for one, names in users.items():
        lines += ["", "=" * 100, "Of " + ", ".join(dict.fromkeys(names)) + ":", "", one]
    return "\n".join(lines) + "\n"


def sbom(parts: list[Part], version: str) -> str:
    """The list of licences for programs: CycloneDX 1.5."""

    def component(part: Part, kind: str = "library") -> dict:
        told = {
            "type": kind,
            "bom-ref": part.url,
            "name": part.name,
            "version": part.version,
            "licenses": [{"expression": part.licence.replace("/", " OR ")}],
            "purl": part.url,
        }
        if part.patch:
            told["pedigree"] = {"patches": [{"type": "unofficial", "diff": {"text": {"content": part.patch}}}]}
        return told

    own = Part("dq-server", version, "MIT", [], f"pkg:generic/dq-server@{version}")
    told = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(own, "application")},
        "components": [component(part) for part in parts],
    }
    return json.dumps(told, indent=1) + "\n"


def everything(programs: Path, target: str, engine_version: str, rust_version: str) -> list[Part]:
    """The parts of all programs of a bundle, each once, in the order of their names."""
    parts = [*engine(programs, engine_version), rust(rust_version)]
    for manifest in ("Cargo.toml", "cli/Cargo.toml"):
        parts += crates(ROOT / manifest, target)
    return sorted({(part.name, part.version): part for part in parts}.values(), key=lambda part: (part.name, part.version))
