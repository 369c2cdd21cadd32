"""The check that the layers of the module use only those below them finds what it must find."""

import subprocess

import pytest

from tests.harness.server import ROOT


def check(sources):
    return subprocess.run([ROOT / "scripts/layers.sh", sources], capture_output=True, text=True)


@pytest.fixture
def sources(tmp_path):
    """Sources of three layers, in which all is well."""
    for layer in ("commands", "server", "redis"):
        (tmp_path / layer).mkdir()
    (tmp_path / "commands/send.rs").write_text("use crate::redis::Context;\nuse crate::server::commit;\n")
    (tmp_path / "server/commit.rs").write_text("//! See [`crate::commands`].\nuse crate::redis::Context;\n")
    (tmp_path / "redis/context.rs").write_text("use super::raw;\n")
    return tmp_path


def test_arrows_that_point_down_pass(sources):
    assert check(sources).returncode == 0


@pytest.mark.parametrize(
    "file, line",
    [
        ("redis/context.rs", "use crate::server::commit;"),
        ("redis/context.rs", "    (crate::commands::ALL)[0].handler;"),
        ("server/commit.rs", "use crate::commands::send;"),
        ("server/commit.rs", "use super::super::commands::send;"),
        ("commands/send.rs", '#[path = "../server/commit.rs"]'),
    ],
)
def test_an_arrow_that_points_up_or_hides_fails(sources, file, line):
    path = sources / file
    path.write_text(path.read_text() + line + "\n")
    done = check(sources)
    assert done.returncode == 1
    assert line.strip() in done.stdout and "error:" in done.stderr
