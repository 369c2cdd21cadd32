"""`dq server`: a server for users without one, and one for a test that ends with it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
import redis

from tests.harness.server import engine, free_port, module_path, wait_for

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.timeout(600)


class Run:
    """A `dq server` under way."""

    def __init__(self, program, *words, env=None, **options):
        variables = {**os.environ, "DQ_ENGINE": shutil.which(engine()), "DQ_MODULE": str(module_path()), **(env or {})}
        self.process = subprocess.Popen(
            [program, "server", *map(str, words)],
            env={name: value for name, value in variables.items() if value is not None},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def first_line(self) -> str:
        line = self.process.stdout.readline().rstrip("\n")
        assert line, self.process.stderr.read()
        return line

    def engine(self) -> int:
        """The process of the real server."""
        [child] = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(child)

    def end(self, number=signal.SIGTERM, code=0) -> str:
        """Asks for the end. Returns what it said besides."""
        self.process.send_signal(number)
        return self.ended(code)

    def ended(self, code=0) -> str:
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == code, out + err
        return out + err


@pytest.fixture
def start(program):
    """Starts `dq server`. A server that still runs after the test is ended."""
    runs = []

    def start(*words, **options):
        runs.append(Run(program, *words, **options))
        return runs[-1]

    yield start
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
        run.process.communicate()


@pytest.fixture
def readable_place():
    """A directory that everybody may enter, and into which only root may write."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


def client(url):
    return closing(redis.Redis.from_url(url))


def works(url, queue="q"):
    with client(url) as r:
        r.execute_command("DQ.SEND", queue, "x", "ID", "a")
        assert r.execute_command("DQ.FETCH", queue)[0][0] == b"a"


def answers(port) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_gone(pid) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


# ---- for tests


def test_an_ephemeral_server_prints_its_url_works_and_leaves_nothing(start, tmp_path):
    # Longer than the path of a socket may be.
    place = tmp_path / ("long" * 40)
    place.mkdir()
    run = start("--ephemeral", env={"TMPDIR": str(place)})
    url = run.first_line()
    works(url)
    with client(url) as r:
        assert r.config_get("appendonly") == {"appendonly": "no"}
        assert r.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert r.config_get("bind") == {"bind": "127.0.0.1"}
    assert run.end() == ""
    assert list(place.iterdir()) == []


def test_ephemeral_servers_that_start_at_once_have_ports_of_their_own(start):
    runs = [start("--ephemeral") for _ in range(8)]
    urls = [run.first_line() for run in runs]
    assert len(set(urls)) == len(urls)
    for number, url in enumerate(urls):
        works(url, f"q{number}")
    for url in urls:
        with client(url) as r:
            assert r.dbsize() == 1


def test_an_ephemeral_server_takes_the_port_that_it_is_told(start):
    port = free_port()
    run = start("--ephemeral", "--port", port)
    assert run.first_line() == f"redis://127.0.0.1:{port}"
    other = start("--ephemeral", "--port", port)
    assert f"port {port} is in use" in other.ended(1)


def test_an_ephemeral_server_is_gone_with_its_parent(program):
    """The parent is killed, so it cannot report its end."""
    script = "import subprocess, sys; subprocess.run([sys.argv[1], 'server', '--ephemeral'])"
    variables = {**os.environ, "DQ_ENGINE": shutil.which(engine()), "DQ_MODULE": str(module_path())}
    parent = subprocess.Popen([sys.executable, "-c", script, program], env=variables, stdout=subprocess.PIPE, text=True)
    url = parent.stdout.readline().strip()
    works(url)
    parent.kill()
    # The pipe is closed when the program has ended, too.
    assert parent.communicate(timeout=60)[0] == ""
    wait_for(lambda: not answers(int(url.rsplit(":", 1)[1])), 60, "the end of the server")


@pytest.mark.parametrize("words", [["--ephemeral"], []])
def test_the_engine_is_gone_when_dq_is_killed(start, words, tmp_path):
    words = words or ["--port", free_port(), "--data", tmp_path]
    run = start(*words)
    run.first_line()
    engine = run.engine()
    run.process.kill()
    wait_for(lambda: is_gone(engine), 60, "the end of the server")


def test_an_ephemeral_server_ends_when_its_engine_does(start):
    run = start("--ephemeral")
    run.first_line()
    os.kill(run.engine(), signal.SIGKILL)
    assert "by the signal 9" in run.ended(128 + signal.SIGKILL)


def test_a_password_is_asked_for_and_in_no_process_list(start, tmp_path):
    secret = 'p:a"s\\s@ wörd'
    file = tmp_path / "password"
    file.write_text(f"{secret}\n")
    file.chmod(0o600)
    run = start("--ephemeral", "--password-file", file)
    url = run.first_line()
    works(url)
    port = int(url.rsplit(":", 1)[1])
    with closing(redis.Redis(port=port)) as r, pytest.raises(redis.AuthenticationError):
        r.ping()
    with closing(redis.Redis(port=port, password=secret)) as r:
        assert r.ping()
    for pid in (run.process.pid, run.engine()):
        for file in ("cmdline", "environ"):
            assert secret.encode() not in Path(f"/proc/{pid}/{file}").read_bytes()


# ---- for good


def test_a_server_keeps_its_data_over_ctrl_c(start, tmp_path):
    port, data = free_port(), tmp_path / "new/data"
    words = ["--port", port, "--data", data]
    run = start(*words)
    assert f"is ready on 127.0.0.1, port {port}" in run.first_line()
    with client(f"redis://127.0.0.1:{port}") as r:
        assert r.config_get("append*")["appendonly"] == "yes"
        assert r.config_get("appendfsync") == {"appendfsync": "everysec"}
        r.execute_command("DQ.SEND", "q", "kept", "ID", "a")
    assert f"stopped, all data is in {data}" in run.end(signal.SIGINT)
    again = start(*words)
    again.first_line()
    with client(f"redis://127.0.0.1:{port}") as r:
        assert r.execute_command("DQ.FETCH", "q")[0][3] == b"kept"
    assert "not stopped properly" not in again.end()


def test_a_lock_that_a_killed_server_left_does_not_matter(start, tmp_path):
    port = free_port()
    words = ["--port", port, "--data", tmp_path]
    run = start(*words)
    run.first_line()
    with client(f"redis://127.0.0.1:{port}") as r:
        r.execute_command("DQ.SEND", "q", "kept", "ID", "a")
    engine, process = run.engine(), run.process.pid
    os.kill(engine, signal.SIGKILL)
    assert "by the signal 9" in run.ended(128 + signal.SIGKILL)
    again = start(*words)
    again.first_line()
    with client(f"redis://127.0.0.1:{port}") as r:
        assert r.execute_command("DQ.FETCH", "q")[0][3] == b"kept"
    assert f"(process {process}) was not stopped properly" in again.end()


def test_two_servers_do_not_share_a_directory(start, tmp_path):
    run = start("--port", free_port(), "--data", tmp_path)
    run.first_line()
    said = start("--port", free_port(), "--data", tmp_path).ended(1)
    assert f"{tmp_path} is in use by another server (process {run.process.pid})" in said


def test_data_that_nobody_names_is_in_the_home_of_the_user(start, tmp_path):
    port = free_port()
    run = start("--port", port, env={"HOME": str(tmp_path), "XDG_DATA_HOME": None})
    run.first_line()
    run.end()
    place = tmp_path / f".local/share/dq/{port}"
    assert (place / "appendonlydir").is_dir() and place.stat().st_mode & 0o777 == 0o700


def test_a_taken_port_is_named_with_another_one(start, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = start("--port", port, "--data", tmp_path).ended(1)
    assert f"port {port} is in use" in said and f"--port {port + 1}" in said


def test_a_directory_that_is_none_is_refused(start, tmp_path):
    (tmp_path / "file").write_text("")
    assert "is no directory" in start("--port", free_port(), "--data", tmp_path / "file").ended(1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_directory_that_is_not_writable_is_refused(program, readable_place):
    place = readable_place
    copied = place / "dq"
    shutil.copy(program, copied)
    run = subprocess.run(
        [copied, "server", "--port", str(free_port()), "--data", place / "data"],
        env={"PATH": os.environ["PATH"], "DQ_ENGINE": str(copied), "DQ_MODULE": str(copied)},
        user=65534,
        group=65534,
        extra_groups=[],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1 and "is not writable for this user" in run.stderr, run.stderr


def test_without_an_engine_it_says_where_it_looked(program, tmp_path):
    copied = tmp_path / "dq"
    shutil.copy(program, copied)
    run = subprocess.run([copied, "server", "--ephemeral"], env={"PATH": "/nothing/here"}, capture_output=True, text=True)
    assert run.returncode == 1
    assert "no Valkey or Redis server was found" in run.stderr
    for place in (tmp_path, "/nothing/here"):
        assert f"\n  {place}\n" in run.stderr
    assert "DQ_ENGINE=/path/to/valkey-server" in run.stderr


def test_engine_and_module_are_found_beside_the_program(start, program, tmp_path):
    for folder in ("bin", "libexec/dq", "links"):
        (tmp_path / folder).mkdir(parents=True)
    copied = tmp_path / "bin/dq"
    shutil.copy(program, copied)
    (tmp_path / "libexec/dq/valkey-server").symlink_to(shutil.which(engine()))
    (tmp_path / "libexec/dq/libdq.so").symlink_to(module_path())
    (tmp_path / "links/dq").symlink_to(copied)
    for name in ("bin/dq", "links/dq"):
        run = Run(tmp_path / name, "--ephemeral", env={"DQ_ENGINE": None, "DQ_MODULE": None, "PATH": "/nothing"})
        works(run.first_line())
        run.end()


def test_a_named_engine_that_is_missing_is_an_error(start):
    assert "DQ_ENGINE names /no/engine, which is no file" in start("--ephemeral", env={"DQ_ENGINE": "/no/engine"}).ended(1)


def test_options_win_over_the_file_and_the_file_over_the_defaults(start, tmp_path):
    port, other = free_port(), free_port()
    file = tmp_path / "my own.conf"
    file.write_text(f"port {other}\nmaxmemory 100mb\nappendfsync always\ndatabases 3\ndaemonize yes\n")
    words = ["--data", tmp_path / "data", "--config", file]
    run = start("--port", port, "--memory", "200mb", *words)
    run.first_line()
    with client(f"redis://127.0.0.1:{port}") as r:
        assert r.config_get("maxmemory") == {"maxmemory": str(200 << 20)}
        assert r.config_get("appendfsync") == {"appendfsync": "always"}
        assert r.config_get("databases") == {"databases": "3"}
    run.end()


def test_a_file_that_the_server_refuses_is_an_error_with_its_words(start, tmp_path):
    file = tmp_path / "bad.conf"
    file.write_text("no-such-setting yes\n")
    said = start("--port", free_port(), "--data", tmp_path / "data", "--config", file).ended(1)
    assert "before it was ready" in said and "no-such-setting" in said
    said = start("--ephemeral", "--config", file).ended(1)
    assert "before it was ready" in said and "no-such-setting" in said


@pytest.mark.parametrize(
    "words, said",
    [
        (["--port", "0"], "--port 0 takes a free port, which only --ephemeral does"),
        (["--bind", "0.0.0.0"], "clients must have a password"),
        (["--ephemeral", "--config", "/no/file"], "/no/file cannot be read"),
        (["--ephemeral", "--password-file", "/no/file"], "/no/file: "),
    ],
)
def test_what_makes_no_sense_is_refused(start, words, said):
    assert said in start(*words).ended(1)


def test_a_size_has_a_known_unit(start):
    assert "such as 2gb" in start("--memory", "2tb").ended(2)
