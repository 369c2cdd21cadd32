"""`make run`, and the reports of the scripts before they install or build anything.

The scripts run from a copy, with replaced programs in front of the PATH.
"""

import os
import shutil
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.server import ROOT, engine, free_port, module_path, wait_for
from tests.harness.wire import Wire

RUST = next(line.split('"')[1] for line in (ROOT / "Cargo.toml").read_text().splitlines() if line.startswith("rust-version"))


class Sources:
    """A copy of the files that the scripts need, on a machine whose programs can be replaced."""

    def __init__(self, root: Path):
        self.root = root
        self.calls = root / "calls"
        self.env = {**os.environ, "HOME": str(root), "REDIS_SERVER": engine()}
        for name in ("DQ_MODULE", "DQ_GREETED", "CARGO_TARGET_DIR", "DATA", "PORT"):
            self.env.pop(name, None)
        shutil.copytree(ROOT / "scripts", root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("Cargo.toml", "redis.conf", "Makefile"):
            shutil.copy(ROOT / name, root)
        self.bin = root / "bin"
        self.bin.mkdir()

    def only(self, *without: str) -> None:
        """Leaves only the system's own programs on the PATH, and of those not the ones named."""
        for folder in ("/usr/bin", "/bin"):
            for program in Path(folder).iterdir():
                there = self.bin / program.name
                if program.name not in without and not there.is_symlink():
                    there.symlink_to(program)
        self.env["PATH"] = str(self.bin)

    def program(self, name: str, script: str) -> Path:
        """Puts a shell script in front of the PATH; its calls and their arguments are in `calls`."""
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>{self.calls}\n{script}\n')
        path.chmod(0o755)
        if str(self.bin) not in self.env["PATH"].split(":"):
            self.env["PATH"] = f"{self.bin}:{self.env['PATH']}"
        return path

    def called(self) -> list:
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def fails(self, script: str, *words, **env) -> str:
        """The only line that a script prints, before it fails."""
        command = [self.root / "scripts" / script, *words]
        done = subprocess.run(command, env={**self.env, **env}, capture_output=True, text=True, timeout=50)
        assert done.returncode == 1, done
        [line] = (done.stdout + done.stderr).splitlines()
        assert line.startswith("error: "), line
        return line

    def start(self, port: int, **env) -> subprocess.Popen:
        """`make run PORT=port` with the module under test."""
        env = {**self.env, "DQ_MODULE": str(module_path()), "PORT": str(port), **env}
        return subprocess.Popen(
            [self.root / "scripts/run.sh"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    @contextmanager
    def running(self, port: int, **env):
        """Starts a server as long as the block takes; gives the process and a connection."""
        process = self.start(port, **env)
        try:
            with wait_for(lambda: connected(process, port), 20, "the server") as wire:
                yield process, wire
        finally:
            process.kill()
            process.communicate()


def connected(process, port):
    assert process.poll() is None, process.stdout.read()
    try:
        wire = Wire(port)
        if wire.call("PING") == b"PONG":
            return wire
        wire.close()
    except OSError:
        pass
    return None


@pytest.fixture
def sources(tmp_path):
    return Sources(tmp_path)


def new_rust(sources):
    """This Rust is new enough, and builds nothing."""
    sources.program("rustc", "echo 'rustc 9.0.0 (x)'")
    sources.program("cargo", "exit 9")


# ---- data


def test_servers_on_two_ports_do_not_share_their_data(sources):
    one, other = free_port(), free_port()
    with sources.running(one) as (_, first), sources.running(other) as (_, second):
        for wire in (first, second):
            wire.ok("CONFIG", "SET", "appendfsync", "always")
        first.call("DQ.SEND", "q", "x", "ID", "first")
        second.call("DQ.SEND", "q", "x", "ID", "second")
    for port, id in ((one, b"first"), (other, b"second")):
        assert (sources.root / "data" / str(port) / "appendonlydir").is_dir()
        with sources.running(port) as (_, wire):
            assert [message[0] for message in wire.call("DQ.FETCH", "q", "COUNT", 10)] == [id]


def test_a_second_server_on_the_same_data_is_refused(sources):
    one, other = free_port(), free_port()
    with sources.running(one) as (process, wire):
        wire.call("DQ.SEND", "q", "x", "ID", "a")
        told = sources.fails("run.sh", PORT=str(other), DATA=f"data/{one}", DQ_MODULE=str(module_path()))
        assert f"data/{one} is in use by another server (process {process.pid})" in told
        assert wire.call("DQ.LEN", "q") == 1
    # The server has been killed: the lock went with it.
    with sources.running(other, DATA=f"data/{one}") as (_, wire):
        assert wire.call("DQ.FETCH", "q")[0][0] == b"a"


def test_directory_and_module_may_have_spaces_in_their_names(sources, tmp_path):
    module = tmp_path / "a module.so"
    shutil.copy(module_path(), module)
    with sources.running(free_port(), DATA="my data", DQ_MODULE=str(module)) as (_, wire):
        assert wire.call("CONFIG", "GET", "dir")[b"dir"].decode() == str(sources.root / "my data")


def test_data_in_the_old_directory_is_pointed_out(sources):
    (sources.root / "data/appendonlydir").mkdir(parents=True)
    port = free_port()
    assert f"mkdir data/{port} && mv data/appendonlydir" in sources.fails("run.sh", PORT=str(port), DQ_MODULE=str(module_path()))


def test_the_server_shuts_down_on_sigint(sources):
    with sources.running(free_port()) as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


# ---- said before anything is installed or built


def test_a_taken_port_is_reported_before_the_build(sources, server):
    new_rust(sources)
    told = sources.fails("run.sh", PORT=str(server.port))
    assert told.endswith(f"something listens on port {server.port} already; take another: make run PORT=7000")
    assert not [call for call in sources.called() if call.startswith("cargo")]
    assert not (sources.root / "data").exists()


def test_an_old_server_is_reported_before_the_build(sources):
    new_rust(sources)
    old = sources.program("redis-server", "echo 'Redis server v=6.0.16 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64 build=0'")
    told = sources.fails("run.sh", PORT=str(free_port()), REDIS_SERVER="redis-server")
    assert f"dq needs Redis 7.0 or newer, or Valkey, and {old} is 6.0.16" in told
    assert not [call for call in sources.called() if call.startswith("cargo")]


@pytest.mark.parametrize("script", ["run.sh", "test.sh", "build.sh", "lint.sh", "cli.sh", "simulate.sh"])
@pytest.mark.parametrize("old", ["1.63.0", "1.85.1", "1.88.0-nightly"])
def test_an_old_rust_is_reported_before_anything_is_installed(sources, script, old):
    sources.only("rustup")
    for installer in ("apt-get", "pip", "sudo"):
        sources.program(installer, "exit 9")
    rustc = sources.program("rustc", f"echo 'rustc {old}'")
    sources.program("cargo", "exit 9")
    told = sources.fails(script, PORT=str(free_port()))
    assert f"dq is built with Rust {RUST} or newer, and {rustc} is {old}: install it with rustup" in told
    assert {call.split()[0] for call in sources.called()} == {"rustc"}


def test_a_missing_rust_is_reported_before_anything_is_installed(sources):
    sources.only("rustc", "cargo", "rustup")
    sources.program("apt-get", "exit 9")
    told = sources.fails("run.sh", PORT=str(free_port()))
    assert f"dq is built with Rust {RUST} or newer, and none is here: install it with rustup" in told
    assert sources.called() == []


def test_with_rustup_an_old_rust_is_to_be_updated_by_it(sources):
    sources.only()
    sources.program("rustup", "exit 9")
    sources.program("rustc", "echo 'rustc 1.80.0'")
    sources.program("cargo", "exit 9")
    assert "run `rustup update stable" in sources.fails("run.sh", PORT=str(free_port()))


def test_an_old_python_is_reported_before_anything_is_installed(sources):
    sources.only()
    new_rust(sources)
    sources.program("apt-get", "exit 9")
    python = sources.program("python3", "echo 3.9.2")
    assert f"the tests need Python 3.10 or newer, and {python} is 3.9.2" in sources.fails("test.sh")
    assert not [call for call in sources.called() if call.startswith("apt-get")]


# ---- what is installed


def test_no_service_is_installed_started_or_disabled(sources):
    """On a Debian without Redis, the server comes without the package whose service starts at every boot."""
    sources.only("redis-server", "redis-cli", "redis-check-rdb", "sudo")
    for program in ("systemctl", "service", "invoke-rc.d", "update-rc.d"):
        sources.program(program, "exit 9")
    real = shutil.which(engine())
    sources.program("apt-cache", "echo '  Candidate: 5:7.0.15-1'")
    sources.program(
        "apt-get",
        f'case "$*" in *install*redis-tools*) ln -s {real} {sources.bin}/redis-check-rdb; ln -s /bin/true {sources.bin}/redis-cli ;; esac',
    )
    sources.program("sudo", 'exec "$@"')
    command = [sources.root / "scripts/setup.sh", "server"]
    env = {**sources.env, "REDIS_SERVER": "redis-server"}
    subprocess.run(command, env=env, check=True, capture_output=True, timeout=50)
    names = {call.split()[0] for call in sources.called()}
    assert names <= {"apt-cache", "apt-get", "sudo"}
    [installed] = [call for call in sources.called() if call.startswith("apt-get") and " install " in call]
    assert installed.endswith(" redis-tools")
    told = subprocess.run([sources.root / "target/bin/redis-server", "--version"], capture_output=True, text=True).stdout
    assert "server v=" in told
    # No work is left the second time.
    sources.calls.unlink()
    subprocess.run(command, env=env, check=True, capture_output=True, timeout=50)
    assert sources.called() == []


def test_a_release_with_an_old_redis_is_reported_before_anything_is_installed(sources):
    sources.only("redis-server", "redis-cli", "redis-check-rdb")
    sources.program("apt-get", "exit 0")
    sources.program("apt-cache", "echo '  Candidate: 5:6.0.16-1+deb11u2'")
    sources.program("sudo", 'exec "$@"')
    told = sources.fails("setup.sh", "server", REDIS_SERVER="redis-server")
    assert "dq needs Redis 7.0 or newer" in told and "6.0.16" in told
    assert not [call for call in sources.called() if " install " in call]


# ---- elsewhere

SYSTEMS = {
    "Fedora Linux 43": ("dnf", "sudo dnf install gcc clang clang-devel valkey valkey-compat-redis python3"),
    "Alpine Linux v3.23": ("apk", "sudo apk add gcc musl-dev clang clang-dev redis python3 cargo"),
    "macOS": ("brew", "brew install llvm redis python"),
    "Ubuntu 24.04.3 LTS": ("apt-get", "what is missing is installed with apt-get"),
    "Linux Mint 22": ("apt-get", "what is missing is installed with apt-get"),
    "Arch Linux": ("", "install a C compiler, libclang, Redis 7.0 or newer, Python and make"),
}


def greeting(name, manager):
    """The first lines of any script on such a system."""
    script = (
        f"unset DQ_GREETED; have() {{ false; }}; say() {{ echo \"$*\"; }}; . scripts/lib/packages.sh; system_name() {{ echo '{name}'; }}; "
        f"manager() {{ echo {manager}; }}; greet; greet"
    )
    return subprocess.run(["bash", "-euc", script], cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", SYSTEMS)
def test_other_systems_are_told_what_works_and_what_to_install(name):
    manager, told = SYSTEMS[name]
    [line] = greeting(name, manager).splitlines()
    assert line.startswith("dq is tested on Debian 12 and 13; ") and line.endswith(told)


def test_debian_gets_no_greeting():
    assert greeting("Debian GNU/Linux 13 (trixie)", "apt-get") == ""
