"""The bundles of `dq server`: their content, their equality in every run, and their installation by pip, npm and tar.

The programs are those of this machine, so nothing is compiled. `make test-bundle` tries the real ones on bare systems.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from tests.harness.cli import build
from tests.harness.optional import need
from tests.harness.server import ROOT, engine, module_path

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the names of the files are those of amd64"),
]
VERSION = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
NAME = f"dq-server-{VERSION}-linux-amd64"
WHEEL = f"dq_server-{VERSION}-py3-none-manylinux_2_31_x86_64.whl"
MAIN, PLATFORM = f"dq-server-{VERSION}.tgz", f"dq-server-linux-x64-{VERSION}.tgz"
EPOCH = 1_700_000_000


def run(*words, **options) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pack(programs, where):
    where.mkdir()
    options = ("--version", VERSION, "--epoch", EPOCH, "--dist", where)
    run(sys.executable, "-m", "scripts.bundle", *options, f"amd64-glibc={programs}", cwd=ROOT, env={**os.environ, "COMPRESSION": "1"})
    return where


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The output of scripts/bundle.sh, from programs on this machine."""
    place = tmp_path_factory.mktemp("programs")
    for source, name in ((build(), "dq"), (module_path(), "libdq.so")):
        shutil.copy(source, place / name)
        run("strip", "--strip-unneeded", place / name)
    shutil.copy(shutil.which(engine()), place / "valkey-server")
    shutil.copy(shutil.which("redis-cli"), place / "valkey-cli")
    (place / "COPYING").write_text("the licence of Valkey\n")
    return place


@pytest.fixture(scope="module")
def dist(programs, tmp_path_factory):
    return pack(programs, tmp_path_factory.mktemp("bundle") / "dist")


def environment(**more) -> dict:
    """Without variables that name other programs."""
    left_out = ("DQ_CLI", "DQ_ENGINE", "DQ_MODULE", "PYTHONPATH", "DQ_TEST_URL")
    return {**{name: value for name, value in os.environ.items() if name not in left_out}, **more}


def first_url(program) -> str:
    """Starts an ephemeral server with the program, and returns its URL."""
    with subprocess.Popen([program, "server", "--ephemeral"], env=environment(), stdout=subprocess.PIPE, text=True) as server:
        url = server.stdout.readline().strip()
        server.terminate()
    assert server.returncode == 0
    return url


def test_all_files_are_made_and_none_is_too_large(dist):
    files = {file.name: file.stat().st_size for file in dist.iterdir()}
    assert set(files) == {f"{NAME}.tar.gz", WHEEL, MAIN, PLATFORM}
    assert max(files.values()) <= 20_000_000, files


def unpack(archive, folder):
    run("tar", "-C", folder, "-xzf", archive)


def test_the_files_are_the_same_in_every_run(programs, dist, tmp_path):
    again = pack(programs, tmp_path / "dist")
    for file in dist.iterdir():
        assert file.read_bytes() == (again / file.name).read_bytes(), file.name


def test_the_tar_is_complete_and_its_programs_run(dist, tmp_path):
    with tarfile.open(dist / f"{NAME}.tar.gz") as archive:
        members = {member.name.removeprefix(f"{NAME}/"): member for member in archive}
    unpack(dist / f"{NAME}.tar.gz", tmp_path)
    programs = {"bin/dq", "libexec/dq/libdq.so", "libexec/dq/valkey-server", "libexec/dq/valkey-cli"}
    assert set(members) == programs | {"LICENSE", "LICENCES.txt", "README.md", "sbom.cdx.json", "SHA256SUMS"}
    for name, member in members.items():
        assert member.mode == (0o755 if name in programs else 0o644), name
        assert (member.uid, member.gid, member.mtime) == (0, 0, EPOCH)
    root = tmp_path / NAME
    sums = dict(reversed(line.split("  ")) for line in (root / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == set(members) - {"SHA256SUMS"}
    assert all(hashlib.sha256((root / name).read_bytes()).hexdigest() == value for name, value in sums.items())
    assert first_url(root / "bin/dq").startswith("redis://127.0.0.1:")


def test_licences_and_parts_of_all_programs_are_listed(dist, tmp_path):
    unpack(dist / f"{NAME}.tar.gz", tmp_path)
    listed = (tmp_path / NAME / "LICENCES.txt").read_text()
    sbom = json.loads((tmp_path / NAME / "sbom.cdx.json").read_text())
    names = {part["name"] for part in sbom["components"]}
    # The list has a crate of the module, one of dq, and the engine with a part of it. And none that only builds or
    # tests.
    assert {"redis-module", "clap", "valkey", "jemalloc", "rust-std"} <= names
    assert not {"bindgen", "proptest", "clap_derive"} & names
    for part in sbom["components"]:
        assert f"{part['name']} {part['version']} (" in listed
    assert "the licence of Valkey" in listed and "Permission is hereby granted" in listed
    [valkey] = [part for part in sbom["components"] if part["name"] == "valkey"]
    [patch] = valkey["pedigree"]["patches"]
    assert patch["diff"]["text"]["content"] == (ROOT / "packaging/server/waitaof.patch").read_text()
    refs = [part["bom-ref"] for part in sbom["components"]]
    assert len(refs) == len(set(refs))


def test_the_record_of_the_wheel_names_every_file(dist):
    with zipfile.ZipFile(dist / WHEEL) as wheel:
        names = wheel.namelist()
        record = wheel.read(f"dq_server-{VERSION}.dist-info/RECORD").decode()
        assert names[-1].endswith("/RECORD")
        assert [line.split(",")[0] for line in record.splitlines()] == names
        modes = {info.filename: info.external_attr >> 16 & 0o777 for info in wheel.infolist()}
    assert modes[f"dq_server-{VERSION}.data/scripts/dq"] == 0o755
    assert modes[f"dq_server-{VERSION}.data/data/libexec/dq/libdq.so"] == 0o755


@pytest.mark.slow
def test_pip_installs_the_wheel_and_the_program_finds_its_engine(dist, tmp_path):
    # The pip of this environment works for the other one, too, so that it need not be installed there.
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    pip = (sys.executable, "-m", "pip", "--python", tmp_path / "venv/bin/python", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--no-index", dist / WHEEL)
    assert first_url(tmp_path / "venv/bin/dq").startswith("redis://127.0.0.1:")
    told = run(tmp_path / "venv/bin/python", "-c", "import dq_server; print(dq_server.program())", env=environment()).strip()
    assert told == str(tmp_path / "venv/bin/dq")
    assert run(tmp_path / "venv/bin/python", "-m", "dq_server", "--version", env=environment()).startswith("dq ")
    assert "bin/dq" in run(*pip, "show", "--files", "dq-server", env=environment())


NODE = """
const { startServer } = require('dq-server');
const net = require('node:net');
startServer().then(async ({ url, stop }) => {
  const socket = net.connect(new URL(url).port, '127.0.0.1');
  socket.write('DQ.SEND mails "welcome ann"\\r\\nDQ.FETCH mails\\r\\n');
  for await (const data of socket) if (String(data).includes('welcome ann')) break;
  await stop();
  console.log('delivered, and stopped');
});
"""


@pytest.mark.slow
def test_npm_installs_the_packages_and_node_starts_a_server(dist, tmp_path):
    need(shutil.which("npm"), "npm")
    (tmp_path / "package.json").write_text("{}")
    npm = ("npm", "install", "--offline", "--silent", "--no-audit", "--no-fund")
    run(*npm, dist / MAIN, dist / PLATFORM, cwd=tmp_path, env=environment())
    assert run("node", "-e", NODE, cwd=tmp_path, env=environment()) == "delivered, and stopped\n"
    assert first_url(tmp_path / "node_modules/.bin/dq").startswith("redis://127.0.0.1:")


def test_node_says_which_package_is_missing(dist, tmp_path):
    need(shutil.which("node"), "Node")
    unpack(dist / MAIN, tmp_path)
    script = "require('./package').startServer().catch((error) => console.log(error.message))"
    done = subprocess.run(["node", "-e", f"try {{ {script} }} catch (error) {{ console.log(error.message) }}"],
                          cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert "the package dq-server-linux-x64 is not installed" in done.stdout


def test_the_main_package_of_npm_depends_on_every_platform(dist):
    with tarfile.open(dist / MAIN) as archive:
        told = json.load(archive.extractfile("package/package.json"))
    assert told["version"] == VERSION
    names = [f"dq-server-linux-{processor}{libc}" for processor in ("x64", "arm64") for libc in ("", "-musl")]
    assert told["optionalDependencies"] == {name: VERSION for name in names}
