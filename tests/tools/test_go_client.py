"""clients/go: its own tests with the race detector, go vet, and the examples of its documentation."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness.cli import programs
from tests.harness.optional import need
from tests.harness.server import ROOT

CLIENT = ROOT / "clients/go"
PAGES = [ROOT / "docs/drivers/go.md", ROOT / "docs/testing.md"]
GOCODE = Path("/usr/share/gocode")
CACHE = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "go-build"
# The first run compiles Go's own library too, with and without the race detector.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def go(*words, cwd=CLIENT, **env) -> str:
    """Runs go to its end, and returns its output. Nothing is downloaded: see debian.mod."""
    redigo = GOCODE / "src/github.com/gomodule/redigo/redis"
    need(shutil.which("go") and shutil.which("gofmt") and redigo.is_dir(), "Go with Debian's redigo")
    settings = {"GOFLAGS": "-modfile=debian.mod", "GO111MODULE": "on", "GOWORK": "off", "GOPROXY": "off", "GOCACHE": str(CACHE)}
    done = subprocess.run(
        ["go", *map(str, words)], cwd=cwd, env={**os.environ, **settings, **env}, capture_output=True, text=True
    )
    # The names of the failed tests come first: the output is long, and only its end is shown.
    failed = re.findall(r"^ *--- FAIL: .*$", done.stdout, re.MULTILINE)
    assert done.returncode == 0, "\n".join(failed) + done.stdout[-6000:] + done.stderr[-6000:]
    return done.stdout


def test_the_package(server):
    said = go("test", "-race", "-count=1", "-v", "./...", DQ_TEST_URL=f"redis://127.0.0.1:{server.port}", **programs())
    passed = re.findall(r"^--- PASS: (\w+)", said, re.MULTILINE)
    assert len(passed) >= 75, said
    assert len([name for name in passed if name.startswith("Example")]) >= 7
    assert not re.search(r"^\s*--- SKIP", said, re.MULTILINE), said


@pytest.mark.parametrize("tags", ["", "goredis"])
def test_vet_finds_nothing(tags):
    """With the tag goredis the adapter for go-redis is compiled against declarations of the parts that it uses."""
    go("vet", f"-tags={tags}", "./...")


def test_it_is_formatted():
    go("version")
    assert subprocess.run(["gofmt", "-l", CLIENT], capture_output=True, text=True, check=True).stdout == ""


def test_it_builds_without_modules_and_with_a_client_that_has_only_do(server, tmp_path):
    """In GOPATH mode, as with Debian's packages: nothing but Go's own library is needed."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/dq").symlink_to(CLIENT)
    program = tmp_path / "main.go"
    program.write_text(
        'package main\n\nimport (\n\t"errors"\n\n\t"dq/delayqueue"\n)\n\ntype client struct{}\n\n'
        'func (client) Do(args ...interface{}) (interface{}, error) { return nil, errors.New("no server") }\n\n'
        'func main() { println(delayqueue.NewQueue0("q", client{}) != nil) }\n'
    )
    go("build", "-o", tmp_path / "main", program, cwd=tmp_path, GO111MODULE="off", GOPATH=str(tmp_path), GOFLAGS="")
    assert "true" in subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stderr


def test_traces_and_layers(server, tmp_path):
    """With OpenTelemetry and zstd from Debian, which are found in GOPATH mode. OpenTelemetry's metrics are declarations."""
    api = "src/go.opentelemetry.io/otel"
    need((GOCODE / api).is_dir() and (GOCODE / "src/github.com/klauspost/compress").is_dir(), "Debian's OpenTelemetry and zstd for Go")
    shutil.copytree(GOCODE / api, tmp_path / api, ignore=shutil.ignore_patterns("metric"))
    (tmp_path / "src/dq").symlink_to(CLIENT)
    (tmp_path / api / "metric").symlink_to(CLIENT / "testdata/otel-metric")
    env = {"GO111MODULE": "off", "GOPATH": f"{tmp_path}:{GOCODE}", "GOFLAGS": "", "DQ_TEST_URL": f"redis://127.0.0.1:{server.port}"}
    for words in (["vet"], ["test", "-count=1"]):
        go(*words, "-tags=opentelemetry", "dq/opentelemetry", cwd=tmp_path, **env)
    assert "--- PASS: TestLayers" in go("test", "-count=1", "-v", "-tags=zstd", "-run=Layers", "dq", cwd=tmp_path, **env)


def test_the_go_of_the_documentation_compiles_and_its_tests_pass(tmp_path):
    blocks = [
        block for page in PAGES for block in re.findall(r"^```go\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    ]
    assert len(blocks) >= 4
    assert len([block for block in blocks if "dqtest.Server(t)" in block]) == 2
    for number, block in enumerate(blocks):
        is_test = "testing.T" in block
        file = tmp_path / str(number) / ("main_test.go" if is_test else "main.go")
        file.parent.mkdir()
        file.write_text(block)
        tags = "-tags=goredis" if "go-redis" in block else "-tags="
        go("vet", tags, file)
        if is_test:
            assert "--- PASS" in go("test", "-count=1", "-v", file, **programs())
