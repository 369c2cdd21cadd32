"""The parts of a release beside the packages: the archives of the clients, and the check of whether it can be made."""

import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile

import pytest

from tests.harness.optional import need
from tests.harness.server import ROOT

VERSION = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]

# npm fetches the compiler of TypeScript.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    where = tmp_path_factory.mktemp("archives")
    script = ROOT / "scripts/client-archives.sh"
    env = {**os.environ, "DIST": str(where)}
    # scripts/setup.sh has installed these packages for the tests of the client, so they need not be downloaded again.
    there, lock = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "node-client", "package-lock.json"
    if (there / lock).exists() and (there / lock).read_bytes() == (ROOT / "clients/node" / lock).read_bytes():
        env["NODE_MODULES"] = str((there / "node_modules").resolve())
    done = subprocess.run([script], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return where


def test_the_wheel_has_the_package_and_its_types(archives):
    with zipfile.ZipFile(archives / f"dq_queue-{VERSION}-py3-none-any.whl") as wheel:
        assert {"dqueue/__init__.py", "dqueue/py.typed", "dqueue_pytest.py"} <= set(wheel.namelist())


def test_the_archive_for_npm_has_compiled_code_and_types(archives):
    need(shutil.which("npm"), "npm")
    with tarfile.open(archives / f"dq-queue-{VERSION}.tgz") as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
        assert {"dist/index.js", "dist/index.d.ts", "dist/bullmq/index.js", "README.md", "LICENSE"} <= names


def test_the_archive_for_composer_says_its_version(archives):
    with zipfile.ZipFile(archives / f"dq-php-{VERSION}.zip") as archive:
        assert {"src/Queue.php", "autoload.php", "README.md"} <= set(archive.namelist())
        manifest = json.loads(archive.read("composer.json"))
    assert (manifest["name"], manifest["version"]) == ("dq/dq", VERSION)


@pytest.fixture
def checkout(tmp_path):
    """A clone in which a release can be made."""
    need(shutil.which("git") and (ROOT / ".git").exists(), "a git repository")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--no-tags", ROOT, clone], check=True)
    changelog = clone / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace(f"## {VERSION} (not published yet)", f"## {VERSION} - 2026-12-01"))
    commit(clone)
    return clone


def commit(clone):
    who = ["-c", "user.name=r", "-c", "user.email=r@example.org"]
    subprocess.run(["git", *who, "commit", "--quiet", "--all", "--message", "docs: date the release"], cwd=clone, check=True)


def check(clone):
    done = subprocess.run([clone / "scripts/release.sh", "--check"], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_a_release_whose_parts_agree_can_be_made(checkout):
    code, told = check(checkout)
    assert code == 0 and f"version {VERSION} can be released" in told


def replace(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("file", ["cli/Cargo.toml", "clients/python/pyproject.toml", "clients/node/package.json"])
def test_another_version_in_a_manifest_is_refused(checkout, file):
    replace(checkout / file, VERSION, "9.9.9")
    commit(checkout)
    code, told = check(checkout)
    assert code != 0 and f"{file} has another version" in told


def test_a_section_without_a_date_is_refused(checkout):
    replace(checkout / "CHANGELOG.md", f"## {VERSION} - 2026-12-01", f"## {VERSION} (not published yet)")
    commit(checkout)
    code, told = check(checkout)
    assert code != 0 and f'no heading "## {VERSION} - DATE"' in told


@pytest.mark.parametrize("tag", [f"v{VERSION}", f"clients/go/v{VERSION}"])
def test_a_version_that_has_a_tag_is_refused(checkout, tag):
    subprocess.run(["git", "tag", tag], cwd=checkout, check=True)
    code, told = check(checkout)
    assert code != 0 and f"the tag {tag} is there already" in told


def test_a_change_that_is_not_committed_is_refused(checkout):
    replace(checkout / "README.md", "#", "##")
    code, told = check(checkout)
    assert code != 0 and "not committed" in told
