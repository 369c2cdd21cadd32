"""A directory that stands for a machine: packages are installed on it by the real dpkg, and servers run in it."""

import re
import shutil
import subprocess
from contextlib import contextmanager

from tests.harness.server import engine, free_port, wait_for
from tests.harness.wire import Wire

# The dependencies of the package, apart from the C library: that is this machine's own, for a module that is built here
# needs no newer one.
NEEDED = {"redis-server": "5:7.0.15-1", "libgcc-s1": "12.2.0-14"}


def output(*command, **kwargs) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=1000, **kwargs).stdout


@contextmanager
def serving(*command, **kwargs):
    """A server that this command starts, and a connection to it."""
    port = free_port()
    words = [*map(str, command), "--port", str(port), "--daemonize", "no"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)

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
            yield wire
    finally:
        server.terminate()
        server.wait(10)
        server.stdout.close()


def works(wire):
    """Whether a message goes through a queue."""
    wire.call("DQ.SEND", "q", "x", "ID", "a")
    return wire.call("DQ.FETCH", "q")[0][0] == b"a"


class Machine:
    """A directory that dpkg regards as a machine, with its own database; the real one is never touched."""

    def __init__(self, root, packages):
        self.root = root
        self.conf = root / "etc/redis/redis.conf"
        self.conf.parent.mkdir(parents=True)
        self.conf.write_text('save ""\n')
        database = root / "var/lib/dpkg"
        (database / "info").mkdir(parents=True)
        (database / "updates").mkdir()
        fields = "Package: {}\nVersion: {}\nStatus: install ok installed\nArchitecture: {}\nMaintainer: x <x@x>\nDescription: x\n"
        arch = output("dpkg", "--print-architecture").strip()
        (database / "status").write_text("\n".join(fields.format(*package, arch) for package in packages.items()))

    def dpkg(self, *words, code=0):
        """Runs dpkg on it, and returns the output."""
        # A machine may be set to leave documents out; this one installs everything. Scripts find the directory by the
        # variable DPKG_ROOT: there is no shell in it for them.
        command = ["dpkg", f"--root={self.root}", f"--log={self.root}/dpkg.log", "--path-include=*"]
        command += ["--force-script-chrootless", "--force-confold", *map(str, words)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1000)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def files(self):
        """The files that are on it, apart from dpkg's own."""
        names = {str(file.relative_to(self.root)) for file in self.root.rglob("*") if not file.is_dir()}
        return {name for name in names if not name.startswith(("var/lib/dpkg/", "dpkg.log"))}

    def serving(self):
        """The server of the packages, which sees this directory as the whole machine, so that every path is the real
        one.
        """
        program, installed = shutil.which(engine()), "/usr/bin/redis-server"
        # The libraries of the server, and those of the module, which its package depends on.
        linked = output("ldd", program) + output("ldd", self.root / "usr/lib/redis/modules/libdq.so")
        places = {file: file for file in re.findall(r"(/\S+) \(0x", linked)}
        for file, place in {program: installed, **places}.items():
            there = self.root / place.lstrip("/")
            if not there.exists():
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, there)
        # There is no locale in that directory, and Valkey does not start with one that it cannot find.
        return serving("env", "LC_ALL=C", "chroot", self.root, installed, "/etc/redis/redis.conf")
