"""What `make dist` makes: complete, checked, reproducible, and the module in it works from where it is unpacked."""

import hashlib
import os
import re
import subprocess
import tarfile

import pytest

from tests.harness.server import ROOT, engine, free_port, module_path, wait_for
from tests.harness.wire import Wire

VERSION = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
TOOLS = {"dq_exporter.py", "migrate_delayqueue.py"}


def output(*command, **kwargs) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=50, **kwargs).stdout


def pack(where):
    environment = {**os.environ, "DQ_MODULE": str(module_path()), "DIST": str(where)}
    output(ROOT / "scripts" / "dist.sh", env=environment)
    return where


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    if not module_path().exists():
        pytest.exit(f"no module at {module_path()}: build it first (make build) or set DQ_MODULE", 2)
    return pack(tmp_path_factory.mktemp("dist"))


@pytest.fixture
def unpacked(dist, tmp_path):
    """The only directory in the tar.gz."""
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    [root] = tmp_path.iterdir()
    return root


@pytest.fixture
def installed(dist, tmp_path):
    """The Debian package's files below a directory."""
    output("dpkg-deb", "--extract", next(dist.glob("*.deb")), tmp_path)
    return tmp_path


def sums(file):
    return dict(reversed(line.split("  ")) for line in file.read_text().splitlines())


def checksum(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def serves(directory, conf, *options):
    """Starts a server with this file in this directory; whether it works through a queue."""
    port = free_port()
    words = [engine(), str(conf), "--port", str(port), "--daemonize", "no", *options]
    server = subprocess.Popen(words, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def answers():
        assert server.poll() is None, server.stdout.read().decode()[-3000:]
        try:
            with Wire(port) as wire:
                return wire.call("PING") == b"PONG"
        except OSError:
            return False

    try:
        wait_for(answers, 10, "the server")
        with Wire(port) as wire:
            wire.call("DQ.SEND", "q", "x", "ID", "a")
            return wire.call("DQ.FETCH", "q")[0][0] == b"a"
    finally:
        server.terminate()
        server.wait(10)
        server.stdout.close()


def test_names_carry_version_and_machine(dist):
    arch = output("dpkg", "--print-architecture").strip()
    names = {f"dq-{VERSION}-linux-{arch}.tar.gz", f"redis-dq_{VERSION}_{arch}.deb"}
    assert {file.name for file in dist.iterdir()} == names | {"SHA256SUMS"}
    assert sums(dist / "SHA256SUMS") == {name: checksum(dist / name) for name in names}


def test_the_tar_is_complete_and_its_checksums_right(unpacked):
    files = {str(file.relative_to(unpacked)) for file in unpacked.rglob("*") if file.is_file()}
    assert {"libdq.so", "redis.conf", "LICENSE", "README.md", "README.zh-CN.md", "CHANGELOG.md"} <= files
    assert {f"scripts/{tool}" for tool in TOOLS} <= files
    assert {"docs/commands.md", "docs/quickstart.md", "monitoring/alerts.yml"} <= files
    assert set(sums(unpacked / "SHA256SUMS")) == files - {"SHA256SUMS"}
    assert all(checksum(unpacked / name) == value for name, value in sums(unpacked / "SHA256SUMS").items())
    assert checksum(unpacked / "libdq.so") == checksum(module_path())
    assert os.access(unpacked / "scripts/dq_exporter.py", os.X_OK)


def test_the_tars_redis_conf_starts_a_server_as_it_says(unpacked):
    conf = (unpacked / "redis.conf").read_text()
    assert "target/release" not in conf and "make " not in conf
    command = re.search(r"^#     mkdir -p data && redis-server redis.conf$", conf, re.MULTILINE)
    assert command, "redis.conf no longer says how to start it"
    (unpacked / "data").mkdir()
    assert serves(unpacked, "redis.conf")


def test_the_package_says_what_it_needs(dist):
    package = next(dist.glob("*.deb"))
    control = dict(re.findall(r"^([\w-]+): (.*)$", output("dpkg-deb", "--field", package), re.MULTILINE))
    assert (control["Package"], control["Version"]) == ("redis-dq", VERSION)
    assert re.search(r"redis-server \(>= 5:7\.0\) \| valkey-server, libc6 \(>= 2\.\d+\)", control["Depends"])
    listing = output("dpkg-deb", "--contents", package)
    assert "root/root" in listing
    assert all(line.split()[1] == "root/root" for line in listing.splitlines())


def test_the_package_brings_module_snippet_and_documents(installed):
    files = {str(file.relative_to(installed)) for file in installed.rglob("*") if file.is_file()}
    doc = "usr/share/doc/redis-dq"
    assert {"usr/lib/redis/modules/libdq.so", "etc/redis/dq.conf"} <= files
    assert {f"{doc}/{name}" for name in ("copyright", "changelog.gz", "README.Debian", "commands.md")} <= files
    assert {f"usr/share/redis-dq/{tool}" for tool in TOOLS} <= files
    assert checksum(installed / "usr/lib/redis/modules/libdq.so") == checksum(module_path())
    licence = (installed / doc / "copyright").read_text()
    assert "Permission is hereby granted" in licence and "the dq authors" in licence


def test_a_server_loads_the_packages_snippet(installed, tmp_path):
    snippet = (installed / "etc/redis/dq.conf").read_text()
    assert "\nloadmodule /usr/lib/redis/modules/libdq.so\n" in snippet
    # Every setting of the module, and nothing of the server's.
    settings = re.findall(r"^([a-z][\w.-]+) ", snippet, re.MULTILINE)
    assert settings[0] == "loadmodule" and all(name.startswith("dq.") for name in settings[1:])
    assert settings[1:] == re.findall(r"^(dq\.[\w.-]+) ", (ROOT / "redis.conf").read_text(), re.MULTILINE)
    here = snippet.replace("/usr/lib/redis", f"{installed}/usr/lib/redis")
    (tmp_path / "dq.conf").write_text(here)
    (tmp_path / "main.conf").write_text(f'save ""\ninclude {tmp_path}/dq.conf\n')
    assert serves(tmp_path, tmp_path / "main.conf")


@pytest.mark.slow
def test_the_same_module_gives_the_same_bytes(dist, tmp_path):
    again = pack(tmp_path)
    assert (again / "SHA256SUMS").read_text() == (dist / "SHA256SUMS").read_text()
