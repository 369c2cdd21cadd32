"""The version and the revision that the module reports, and that the build finds the right revision."""

import json
import os
import re
import shutil
import subprocess

import pytest

from tests.harness.optional import need
from tests.harness.server import ROOT

VERSION = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


def test_info_shows_version_and_revision(server):
    with server.wire() as wire:
        info = dict(re.findall(rb"^(dq_\w+):(.*)\r$", wire.call("INFO", "dq"), re.MULTILINE))
    assert info[b"dq_version"].decode() == VERSION
    assert re.fullmatch(rb"[0-9a-f]{12}(-dirty)?|unknown", info[b"dq_revision"])


def test_module_list_shows_the_version_as_a_number(server):
    with server.wire() as wire:
        # Some servers have their own modules.
        [module] = [module for module in wire.call("MODULE", "LIST") if module[b"name"] == b"dq"]
    major, minor, patch = map(int, VERSION.split("."))
    assert (module[b"name"], module[b"ver"]) == (b"dq", major * 10000 + minor * 100 + patch)


def test_everything_released_together_has_one_version():
    others = ["cli/Cargo.toml", "clients/python/pyproject.toml"]
    found = {name: re.search(r'^version = "(.*)"$', (ROOT / name).read_text(), re.MULTILINE)[1] for name in others}
    for name in ("clients/node/package.json", "clients/node/package-lock.json"):
        found[name] = json.loads((ROOT / name).read_text())["version"]
    assert found == dict.fromkeys(found, VERSION)


# ---- build.rs


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """The build script, built."""
    program = tmp_path_factory.mktemp("build") / "build"
    subprocess.run(["rustc", "--edition", "2021", "-o", program, ROOT / "build.rs"], check=True)
    return program


class Sources:
    """A directory of sources, which may be a repository."""

    def __init__(self, root, script):
        self.root, self.script = root, script
        (root / "src").mkdir(parents=True)
        (root / "crates/queue/src").mkdir(parents=True)
        (root / "cli/warnings/src").mkdir(parents=True)
        crates = ("crates/queue/src/lib.rs", "cli/warnings/src/lib.rs")
        for name in ("src/lib.rs", *crates, "Cargo.toml", "Cargo.lock", "build.rs", "README.md"):
            (root / name).write_text(name)

    def git(self, *words):
        need(shutil.which("git"), "git")
        who = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"]
        command = ["git", *who, *words]
        return subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "x")
        return self.git("rev-parse", "HEAD")[:12]

    def told(self, **env):
        """The revision, and the files whose change makes cargo ask again."""
        # No repository above a test's directory shall be found.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "DQ_"))}
        env = {**inherited, "GIT_CEILING_DIRECTORIES": str(self.root.parent), **env}
        done = subprocess.run([self.script], cwd=self.root, env=env, check=True, capture_output=True, text=True)
        lines = [line.removeprefix("cargo:").split("=", 1) for line in done.stdout.splitlines()]
        [revision] = [value.removeprefix("DQ_REVISION=") for key, value in lines if key == "rustc-env"]
        return revision, {value for key, value in lines if key == "rerun-if-changed"}

    def revision(self, **env):
        return self.told(**env)[0]


@pytest.fixture
def sources(tmp_path, script):
    return Sources(tmp_path / "dq", script)


def test_without_a_repository_the_revision_is_unknown_or_given(sources):
    assert sources.revision() == "unknown"
    assert sources.revision(DQ_REVISION="") == "unknown"
    assert sources.revision(DQ_REVISION="v1.2.3") == "v1.2.3"


def test_without_git_the_revision_is_unknown(sources):
    sources.git("init", "--quiet")
    sources.commit()
    assert sources.revision(PATH="/nonexistent") == "unknown"


def test_in_a_repository_the_revision_is_the_commit(sources):
    sources.git("init", "--quiet")
    first = sources.commit()
    assert sources.revision() == first
    # A change of a file that the module is not built from does not make another module of it.
    (sources.root / "README.md").write_text("changed")
    (sources.root / "notes").write_text("new")
    assert sources.revision() == first
    second = sources.commit()
    assert sources.revision() == second != first
    # A hook of another repository runs the build.
    assert sources.revision(GIT_DIR="/nonexistent", GIT_WORK_TREE="/") == second


@pytest.mark.parametrize("name", ["src/lib.rs", "src/new.rs", "crates/queue/src/lib.rs", "Cargo.toml", "Cargo.lock", "build.rs"])
def test_changed_sources_make_the_revision_dirty(sources, name):
    sources.git("init", "--quiet")
    commit = sources.commit()
    (sources.root / name).write_text("changed")
    assert sources.revision() == f"{commit}-dirty"


def test_the_repository_of_an_outer_project_is_ignored(sources, tmp_path):
    Sources(tmp_path / "theirs", sources.script).git("init", "--quiet")
    inner = Sources(tmp_path / "theirs" / "vendor", sources.script)
    inner.git("add", "--all")
    inner.git("commit", "--quiet", "--message", "x")
    assert inner.revision(GIT_CEILING_DIRECTORIES="/") == "unknown"


def test_cargo_computes_the_revision_again_when_it_may_have_changed(sources):
    def newest():
        """The time of the last change of the files that cargo watches, in folders too."""
        watched = [sources.root / name for name in sources.told()[1]]
        assert all(path.exists() for path in watched), watched
        files = [file for path in watched for file in (path, *path.rglob("*"))]
        return max(file.stat().st_mtime_ns for file in files)

    sources.git("init", "--quiet")
    sources.commit()
    changes = [
        lambda: sources.commit(),
        lambda: (sources.git("pack-refs", "--all"), sources.commit()),
        lambda: sources.git("checkout", "--quiet", "-b", "side"),
        lambda: (sources.git("checkout", "--quiet", "--detach"), sources.commit()),
        lambda: (sources.root / "src/lib.rs").write_text("changed"),
    ]
    for number, change in enumerate(changes):
        before = newest()
        change()
        assert newest() > before, number
