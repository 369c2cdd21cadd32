"""The packages that `make dist` makes are complete, have right checksums, are reproducible, and work where they are unpacked.

The Debian package is installed by the real dpkg into a directory that stands for a machine.
"""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness.machine import NEEDED, Machine, output, serving, works
from tests.harness.optional import need
from tests.harness.server import ROOT, engine, module_path

# The packages are built here, which takes minutes where nothing has been compiled before.
pytestmark = pytest.mark.timeout(1200)
VERSION = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


def pack(where, **variables):
    environment = {**os.environ, "DQ_MODULE": str(module_path()), "DIST": str(where), "COMPRESSION": "1", **variables}
    output(ROOT / "scripts" / "dist.sh", env=environment)
    return where


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    if not module_path().exists():
        pytest.exit(f"no module at {module_path()}: build it first (make build) or set DQ_MODULE", 2)
    return pack(tmp_path_factory.mktemp("dist"))


def unpack(dist, kind, where):
    """The directory that is in the tar.gz of this kind."""
    output("tar", "-xzf", next(dist.glob(f"dq-*-{kind}")), "-C", where)
    [root] = where.iterdir()
    return root


@pytest.fixture
def unpacked(dist, tmp_path):
    """The only directory in the tar.gz."""
    (tmp_path / "tar").mkdir()
    return unpack(dist, "linux-*[!g].tar.gz", tmp_path / "tar")


@pytest.fixture
def installed(dist, tmp_path):
    """The Debian package's files below a directory."""
    output("dpkg-deb", "--extract", next(dist.glob("*.deb")), tmp_path / "deb")
    return tmp_path / "deb"


def sums(file):
    return dict(reversed(line.split("  ")) for line in file.read_text().splitlines())


def checksum(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def dead_links(root):
    """Links between the pages below a directory that lead nowhere, except links to tests, which only the sources contain."""
    found = []
    for page in root.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            if ":" not in link and not link.startswith("../tests/") and not (page.parent / link).exists():
                found.append(f"{page.relative_to(root)}: {link}")
    return found


def test_file_names_carry_version_and_architecture(dist):
    arch = output("dpkg", "--print-architecture").strip()
    tar = f"dq-{VERSION}-linux-{arch}"
    names = {f"{tar}.tar.gz", f"{tar}-debug.tar.gz", f"redis-dq_{VERSION}_{arch}.deb", f"dq-{VERSION}.buildinfo"}
    assert {file.name for file in dist.iterdir()} == names | {"SHA256SUMS"}
    assert sums(dist / "SHA256SUMS") == {name: checksum(dist / name) for name in names}


def test_the_tar_is_complete_and_its_checksums_right(unpacked):
    files = {str(file.relative_to(unpacked)) for file in unpacked.rglob("*") if file.is_file()}
    assert {"libdq.so", "bin/dq", "redis.conf", "LICENSE", "README.md", "README.zh-CN.md", "CHANGELOG.md"} <= files
    assert {"docs/commands.md", "docs/quickstart.md", "monitoring/alerts.yml"} <= files
    assert {"clients/python/pyproject.toml", "clients/python/src/dqueue/_sync/worker.py"} <= files
    assert not [name for name in files if re.search(r"/\.|__pycache__|node_modules|egg-info", name)]
    assert set(sums(unpacked / "SHA256SUMS")) == files - {"SHA256SUMS"}
    assert all(checksum(unpacked / name) == value for name, value in sums(unpacked / "SHA256SUMS").items())
    assert all(os.access(unpacked / name, os.X_OK) for name in ("libdq.so", "bin/dq"))


def test_links_in_the_tar_lead_somewhere(unpacked):
    assert dead_links(unpacked) == []


PAGES = ("README.md", "README.zh-CN.md", "docs/quickstart.md", "docs/quickstart.zh-CN.md")


def test_the_packed_pages_do_not_say_how_to_build(unpacked, installed):
    for root, start in ((unpacked, "redis-server redis.conf"), (installed / "usr/share/doc/redis-dq", "include /etc/redis/dq.conf")):
        for name in PAGES:
            page = (root / name).read_text()
            assert f"\n{start}\n" in page, name
            assert "@GLIBC@" not in page and "\nmake run" not in page, name


def sections(file):
    """The sections of a library or program that are not empty."""
    return set(re.findall(r"\] (\.\S+)", output("readelf", "--wide", "--section-headers", file)))


def build_id(file):
    return re.search(r"Build ID: (\w+)", output("readelf", "--notes", file))[1]


def test_debug_symbols_are_packed_separately_and_match(dist, unpacked, tmp_path_factory):
    symbols = unpack(dist, "debug.tar.gz", tmp_path_factory.mktemp("debug"))
    for packed in (unpacked / "libdq.so", unpacked / "bin/dq"):
        file = symbols / f"{packed.name}.debug"
        assert not sections(packed) & {".debug_line", ".debug_info", ".symtab"}
        assert ".symtab" in sections(file)
        assert build_id(packed) == build_id(file)
        assert file.name.encode() in packed.read_bytes()
    assert ".debug_line" in sections(symbols / "libdq.so.debug")


def test_the_packed_module_is_much_smaller_than_the_built_one(unpacked):
    assert (unpacked / "libdq.so").stat().st_size * 2 < module_path().stat().st_size


def test_the_packed_program_runs(unpacked):
    assert output(unpacked / "bin/dq", "--version").startswith("dq ")


# The paths of programs that the units of the servers' packages allow: Debian 12 (redis-server 7.0.15-1~deb12u10),
# Debian 13 (redis-server 8.0.2-3, valkey-server 8.1.1). `scripts/install-tests/packages.sh` reads the real ones.
EXEC_PATHS = ("/usr/bin/redis-server", "/usr/lib", "/lib")


def test_the_service_units_allow_loading_the_packaged_module(installed):
    """NoExecPaths=/ forbids modules everywhere but below ExecPaths."""
    snippet = (installed / "etc/redis/dq.conf").read_text()
    module = re.search(r"^loadmodule (\S+)$", snippet, re.MULTILINE)[1]
    paths = EXEC_PATHS
    unit = Path("/lib/systemd/system/redis-server.service")
    if unit.exists() and (line := re.search(r"^ExecPaths=(.*)$", unit.read_text(), re.MULTILINE)):
        paths = line[1].split()
    assert any(module.startswith(f"{path}/") for path in paths)


def test_the_redis_conf_of_the_tar_starts_a_server(unpacked):
    conf = (unpacked / "redis.conf").read_text()
    assert "target/release" not in conf and "make " not in conf
    command = re.search(r"^#     mkdir -p data/6379 && redis-server redis.conf$", conf, re.MULTILINE)
    assert command, "redis.conf no longer says how to start it"
    (unpacked / "data/6379").mkdir(parents=True)
    with serving(engine(), "redis.conf", cwd=unpacked) as wire:
        assert works(wire)


def test_the_package_declares_its_dependencies(dist):
    package = next(dist.glob("*.deb"))
    control = dict(re.findall(r"^([\w-]+): (.*)$", output("dpkg-deb", "--field", package), re.MULTILINE))
    assert (control["Package"], control["Version"]) == ("redis-dq", VERSION)
    assert re.search(r"redis-server \(>= 5:7\.0\) \| valkey-server, libc6 \(>= 2\.\d+\)", control["Depends"])
    # Debian has a package dq, a tool for DNS, with a program of the same name.
    assert control["Conflicts"] == "dq"
    listing = output("dpkg-deb", "--contents", package)
    assert "root/root" in listing
    assert all(line.split()[1] == "root/root" for line in listing.splitlines())


def test_the_package_has_module_configuration_and_documents(installed):
    files = {str(file.relative_to(installed)) for file in installed.rglob("*") if file.is_file()}
    doc = "usr/share/doc/redis-dq"
    assert {"usr/lib/redis/modules/libdq.so", "etc/redis/dq.conf"} <= files
    assert {f"{doc}/{name}" for name in ("copyright", "changelog.gz", "README.Debian", "docs/commands.md")} <= files
    assert dead_links(installed / doc) == []
    assert os.access(installed / "usr/bin/dq", os.X_OK)
    licence = (installed / doc / "copyright").read_text()
    assert "Permission is hereby granted" in licence and "the dq authors" in licence


def test_a_server_loads_the_configuration_of_the_package(installed, tmp_path):
    snippet = (installed / "etc/redis/dq.conf").read_text()
    assert "\nloadmodule /usr/lib/redis/modules/libdq.so\n" in snippet
    # Every setting of the module, and nothing of the server's.
    settings = re.findall(r"^([a-z][\w.-]+) ", snippet, re.MULTILINE)
    assert settings[0] == "loadmodule" and all(name.startswith("dq.") for name in settings[1:])
    assert settings[1:] == re.findall(r"^(dq\.[\w.-]+) ", (ROOT / "redis.conf").read_text(), re.MULTILINE)
    here = snippet.replace("/usr/lib/redis", f"{installed}/usr/lib/redis")
    (tmp_path / "dq.conf").write_text(here)
    (tmp_path / "main.conf").write_text(f'save ""\ninclude {tmp_path}/dq.conf\n')
    with serving(engine(), "main.conf", cwd=tmp_path) as wire:
        assert works(wire)


@pytest.fixture
def machine(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can install packages and use chroot, also where both stay within a directory")
    libc = output("dpkg-query", "--show", "--showformat=${Version}", "libc6")
    return lambda **packages: Machine(tmp_path / "machine", {**NEEDED, "libc6": libc, **packages})


@pytest.fixture
def package(dist):
    return next(dist.glob("*.deb"))


def test_the_package_can_be_installed_upgraded_and_removed(machine, package):
    here = machine()
    before = here.files()
    told = here.dpkg("--install", package)
    assert "add 'include /etc/redis/dq.conf' to /etc/redis/redis.conf and restart redis-server" in told
    assert {"usr/lib/redis/modules/libdq.so", "etc/redis/dq.conf", "usr/bin/dq"} <= here.files()
    assert here.conf.read_text() == 'save ""\n'
    here.conf.write_text('save ""\ninclude /etc/redis/dq.conf\n')
    with here.serving() as wire:
        assert works(wire)
        paths = [module.get(b"path") for module in wire.call("MODULE", "LIST")]
        assert b"/usr/lib/redis/modules/libdq.so" in paths
    # The snippet is the administrator's: what they change in it outlives the next version.
    snippet = here.root / "etc/redis/dq.conf"
    snippet.write_text(snippet.read_text().replace("dq.lease 30000", "dq.lease 12345"))
    assert "to load the module" not in here.dpkg("--install", package)
    with here.serving() as wire:
        assert wire.call("CONFIG", "GET", "dq.lease") == {b"dq.lease": b"12345"}
    assert "take 'include /etc/redis/dq.conf' out" in here.dpkg("--remove", "redis-dq")
    assert not {"usr/lib/redis/modules/libdq.so", "usr/bin/dq"} & here.files() and snippet.exists()
    here.dpkg("--purge", "redis-dq")
    programs = ("usr/bin/", "usr/lib/", "usr/local/", "lib/", "lib64/")
    assert {name for name in here.files() if not name.startswith(programs)} == before
    assert not (here.root / "usr/lib/redis").exists()


def test_an_older_server_is_refused(machine, package):
    here = machine(**{"redis-server": "5:6.2.7-1"})
    assert "redis-dq depends on redis-server (>= 5:7.0) | valkey-server" in here.dpkg("--install", package, code=1)


@pytest.fixture(scope="module")
def again(tmp_path_factory):
    """The packages once more, their checksums signed with a key that is thrown away, where gpg is there."""
    where, home = tmp_path_factory.mktemp("again"), tmp_path_factory.mktemp("gnupg")
    if not shutil.which("gpg"):
        yield pack(where)
        return
    home.chmod(0o700)
    environment = {**os.environ, "GNUPGHOME": str(home)}
    key = ["--pinentry-mode", "loopback", "--passphrase", "", "--quick-generate-key", "releaser <r@example.org>", "ed25519"]
    output("gpg", "--batch", *key, env=environment)
    yield pack(where, GNUPGHOME=str(home), SIGN_KEY="r@example.org")
    subprocess.run(["gpgconf", "--kill", "all"], env=environment)


@pytest.mark.slow
def test_the_same_module_gives_the_same_bytes(dist, again):
    assert (again / "SHA256SUMS").read_text() == (dist / "SHA256SUMS").read_text()
    assert all(checksum(again / name) == value for name, value in sums(again / "SHA256SUMS").items())


@pytest.fixture
def signed(again, tmp_path):
    """A copy of the signed packages, which may be changed."""
    need(shutil.which("gpg"), "gpg")
    return shutil.copytree(again, tmp_path / "signed")


@pytest.mark.slow
def test_the_checksums_are_signed_and_verified_as_the_page_says(signed, tmp_path):
    page = (ROOT / "docs/operations.md").read_text()
    [lines] = re.findall(r"^```\n(gpg --show-keys .*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "user").mkdir(mode=0o700)
    user = {**os.environ, "GNUPGHOME": str(tmp_path / "user")}

    def verify():
        return subprocess.run(["bash", "-e", "-c", lines], cwd=signed, env=user, capture_output=True, text=True)

    told = verify()
    assert told.returncode == 0 and "Good signature" in told.stderr, told.stderr
    assert told.stdout.count(": OK") == len(sums(signed / "SHA256SUMS"))
    package = next(signed.glob("*.deb"))
    package.write_bytes(package.read_bytes() + b"x")
    told = verify()
    assert told.returncode != 0 and f"{package.name}: FAILED" in told.stdout
    listed = signed / "SHA256SUMS"
    listed.write_text(listed.read_text().replace(checksum(signed / f"dq-{VERSION}.buildinfo"), checksum(package)))
    told = verify()
    assert told.returncode != 0 and "BAD signature" in told.stderr
    subprocess.run(["gpgconf", "--kill", "all"], env=user)


def test_a_key_that_gpg_has_not_is_refused_before_anything_is_built(tmp_path):
    need(shutil.which("gpg"), "gpg")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        pack(tmp_path / "dist", SIGN_KEY="nobody@example.org")
    assert "gpg has no secret key nobody@example.org" in refused.value.stderr
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize("service", ["dq-exporter", "dq-web"])
def test_the_package_brings_services_that_systemd_accepts(installed, service):
    unit = installed / f"lib/systemd/system/{service}.service"
    settings = dict(line.split("=", 1) for line in unit.read_text().splitlines() if re.match(r"\w+=", line))
    program = settings["ExecStart"].split()[0]
    assert os.access(installed / program.lstrip("/"), os.X_OK)
    defaults = installed / settings["EnvironmentFile"].lstrip("-/")
    assert (defaults.stat().st_mode & 0o777) == 0o600, "it may hold a password"
    need(shutil.which("systemd-analyze"), "systemd-analyze")
    text = unit.read_text().replace(program, str(installed / program.lstrip("/")))
    unit.write_text(text.replace(" redis-server.service", ""))
    told = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (told.returncode, told.stderr) == (0, "")
