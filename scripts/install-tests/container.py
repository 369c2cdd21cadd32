#!/usr/bin/env python3
"""Runs the steps of packaging/container/Containerfile on minimal Debian systems, without a container engine.

Each stage gets a system of its own (scripts/lib/bare-system.sh), with the files of this commit as the context. Then the server
is started with its own command and user, in a network of its own, and its health check is run. A message must go through a
queue, and `dq exporter` of the image must show it. Needs root, debootstrap, ip and git.

    scripts/install-tests/container.py [--release bookworm]      default: the release that the Containerfile names
"""

import argparse
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "packaging/container/Containerfile"
NETWORK = "dq-container"
# Set in the image of Rust's own; here the machine's Rust is mounted.
RUST = {"PATH": "/usr/local/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


def say(text):
    print(f"==> {text}", file=sys.stderr, flush=True)


def shell(script, **options):
    """Runs lines of bash with the functions of bare-system.sh."""
    lines = f". scripts/lib/common.sh; . scripts/lib/reproducible.sh; . scripts/lib/bare-system.sh; {script}"
    return subprocess.run(["bash", "-euo", "pipefail", "-c", lines], cwd=ROOT, check=True, text=True, **options)


def mounts() -> list:
    """The places at which something is mounted. Path.is_mount does not see that a folder of the same disk is."""
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def instructions(text) -> list:
    """The instructions of a Containerfile: (word, rest)."""
    text = re.sub(r"\\\n", " ", text)
    lines = [line.strip() for line in text.splitlines()]
    return [tuple(line.split(None, 1)) for line in lines if line and not line.startswith("#")]


class Stage:
    """A system in which the instructions of a stage are run."""

    def __init__(self, name, image, release):
        self.name, self.image = name, image
        self.user, self.workdir, self.env, self.command, self.health = "root", "/", {}, None, None
        script = f'fresh_root {release} container-{name}'
        self.root = Path(shell(script, stdout=subprocess.PIPE).stdout.strip())
        if "/rust:" in image:
            self.mount_rust()

    def mount_rust(self):
        home = subprocess.run(["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True).stdout.strip()
        place = self.root / "usr/local/rust"
        place.mkdir()
        subprocess.run(["mount", "--bind", home, place], check=True)
        # The folder is mounted read-only, so that the machine's own Rust cannot be changed.
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        self.env.update(RUST)

    def close(self):
        place = self.root / "usr/local/rust"
        if str(place) in mounts():
            subprocess.run(["umount", "-l", place], check=True)
        shell(f"remove_root {shlex.quote(str(self.root))}")

    def words(self, line) -> list:
        """The words that run a line of shell in the stage, as its user."""
        env = [f"{name}={value}" for name, value in self.env.items()]
        become = [] if self.user == "root" else ["setpriv", f"--reuid={self.user}", f"--regid={self.group()}", "--clear-groups"]
        inside = ["env", *env, *become, "sh", "-c", f"cd {shlex.quote(self.workdir)} && {line}"]
        return inside

    def group(self) -> str:
        lines = (self.root / "etc/passwd").read_text().splitlines()
        [gid] = [line.split(":")[3] for line in lines if line.startswith(self.user + ":")]
        return gid

    def run(self, line):
        """Runs a line of shell, with the network of the machine, as a build does."""
        words = " ".join(map(shlex.quote, [str(self.root), *self.words(line)]))
        shell(f"in_root {words}", stdin=subprocess.DEVNULL)

    def copy(self, sources, target, origin):
        into = self.root / os.path.join(self.workdir, target).lstrip("/")
        if target.endswith("/") or target == ".":
            into.mkdir(parents=True, exist_ok=True)
        for source in sources:
            found = glob.glob(str(origin / source.lstrip("/")))
            if not found:
                raise SystemExit(f"error: COPY finds no {source}")
            for file in found:
                if os.path.isdir(file):
                    shutil.copytree(file, into, symlinks=True, dirs_exist_ok=True)
                else:
                    shutil.copy2(file, into)

    def start(self, *command):
        """Starts a command, or that of the stage, in the network of the containers."""
        line = "exec " + " ".join(map(shlex.quote, command or json.loads(self.command)))
        return subprocess.Popen(["ip", "netns", "exec", NETWORK, "chroot", self.root, *self.words(line)])

    def inside(self, line) -> str:
        words = ["ip", "netns", "exec", NETWORK, "chroot", self.root, *self.words(line)]
        return subprocess.run(words, capture_output=True, text=True).stdout

    def is_healthy(self) -> bool:
        words = ["ip", "netns", "exec", NETWORK, "chroot", self.root, *self.words(self.health)]
        return subprocess.run(words, capture_output=True).returncode == 0


def build(context, release) -> dict:
    """Runs all stages. Name -> stage."""
    arguments, stages, stage = {}, {}, None
    for word, rest in instructions(FILE.read_text()):
        for name, value in arguments.items():
            rest = rest.replace(f"${{{name}}}", value)
        if word == "ARG":
            name, value = rest.split("=")
            arguments[name] = release if name == "RELEASE" and release else value
        elif word == "FROM":
            image, name = re.fullmatch(r"(\S+) AS (\S+)", rest).groups()
            say(f"{name}: from {image}")
            stage = stages[name] = Stage(name, image, arguments["RELEASE"])
        elif word == "RUN":
            say(f"{stage.name}: {rest}")
            stage.run(rest)
        elif word == "COPY":
            *sources, target = rest.split()
            origin = context
            if sources[0].startswith("--from="):
                origin = stages[sources.pop(0).removeprefix("--from=")].root
            stage.copy(sources, target, origin)
        elif word == "WORKDIR":
            stage.workdir = rest
            (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif word == "ENV":
            name, value = rest.split("=", 1)
            stage.env[name] = value
        elif word == "USER":
            stage.user = rest
        elif word == "CMD":
            stage.command = rest
        elif word == "HEALTHCHECK":
            stage.health = rest.split("CMD ", 1)[1]
        elif word not in ("VOLUME", "EXPOSE"):
            raise SystemExit(f"error: {FILE} has an instruction that is not known here: {word}")
    return stages


def exports() -> bool:
    """Whether the exporter shows the figures of the server."""
    page = "import urllib.request as r; assert b'dq_up 1' in r.urlopen('http://127.0.0.1:9122/metrics').read()"
    words = ["ip", "netns", "exec", NETWORK, sys.executable, "-c", page]
    return subprocess.run(words, capture_output=True).returncode == 0


def wait_for(true, what):
    for _ in range(100):
        if true():
            return
        time.sleep(0.2)
    raise SystemExit(f"error: {what} is not healthy")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", help="a release of Debian")
    release = parser.parse_args().release
    if os.geteuid() != 0:
        raise SystemExit("error: bare systems are made by root only")
    if shutil.which("ip") is None:
        raise SystemExit("error: the containers need a network of their own: apt-get install iproute2")
    context = Path("/var/tmp/dq-container-context")
    shutil.rmtree(context, ignore_errors=True)
    context.mkdir()
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", context], input=packed, check=True)
    stages, running = {}, []
    subprocess.run(["ip", "netns", "add", NETWORK], check=True)
    try:
        subprocess.run(["ip", "netns", "exec", NETWORK, "ip", "link", "set", "lo", "up"], check=True)
        stages = build(context, release)
        server = stages["server"]
        running.append(server.start())
        wait_for(server.is_healthy, "the server")
        assert server.inside("redis-cli DQ.SEND mails 'welcome ann' ID ann-1").strip() == "ann-1"
        assert "welcome ann" in server.inside("redis-cli DQ.FETCH mails")
        assert "mails" in server.inside("dq ls")
        running.append(server.start("dq", "exporter"))
        wait_for(exports, "the exporter")
        say("the image works")
    finally:
        for process in running:
            process.terminate()
            process.wait(30)
        for stage in stages.values():
            stage.close()
        subprocess.run(["ip", "netns", "delete", NETWORK], check=True)
        shutil.rmtree(context)


if __name__ == "__main__":
    main()
