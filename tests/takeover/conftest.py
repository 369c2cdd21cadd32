"""An old server, a new one, and what comes of an import between them."""

import subprocess
import time

import pytest
import redis

from tests.harness.server import Server


class Move:
    """The program dq between two servers."""

    def __init__(self, program, old: Server, new: Server, folder):
        self.program, self.old, self.new, self.folder = program, old, new, folder

    def command(self, peer, *words, old=None, new=None, db=0) -> list[str]:
        ends = ["--from", f"redis://127.0.0.1:{old or self.old.port}/{db}", "--to", f"redis://127.0.0.1:{new or self.new.port}/{db}"]
        return [str(self.program), "import", *([peer] if peer else []), *ends, *map(str, words)]

    def run(self, peer, *words, code=0, **ends) -> subprocess.CompletedProcess:
        """Runs to the end, which must have this exit code."""
        ended = subprocess.run(self.command(peer, *words, **ends), cwd=self.folder, capture_output=True, text=True, timeout=90)
        assert ended.returncode == code, (ended.args, ended.stdout, ended.stderr)
        return ended

    def start(self, peer, *words, **ends) -> subprocess.Popen:
        command = self.command(peer, *words, **ends)
        return subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Until(float):
    """The time at which a key ends, by a clock that other programs delay."""

    def __eq__(self, other):
        return abs(self - other) < 0.1

    __hash__ = float.__hash__


def digest(client: redis.Redis, skip=lambda key: False) -> dict:
    """Every key with all that it holds, but the form in which the server stores it: scores by all their bits, and when it ends."""
    read = {
        b"string": client.get,
        b"stream": client.xrange,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"set": lambda key: set(client.smembers(key)),
        b"hash": client.hgetall,
        b"zset": lambda key: {member: float(score).hex() for member, score in client.zrange(key, 0, -1, withscores=True)},
    }

    def until(key):
        left = client.pttl(key)
        return Until(time.time() + left / 1000) if left > 0 else None

    return {key: (read[client.type(key)](key), until(key)) for key in client.keys("*") if not skip(key)}


def numbers(file) -> list[int]:
    """The numbers of the jobs that have run, which workers write to a file."""
    return [int(line) for line in file.read_text().split()] if file.exists() else []


@pytest.fixture
def move(program, server, make_server, tmp_path):
    """An import from a server without the module to the one with it. Both are empty."""
    old = make_server(load_module=False)
    server.client().flushall()
    yield Move(program, old, server, tmp_path)
