"""The check that the layers of the module use only those below them finds each wrong use."""

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
    (tmp_path / "server/waiting").mkdir()
    (tmp_path / "server/waiting/wait_list.rs").write_text("use crate::server::rights::Call;\n")
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
        ("server/waiting/wait_list.rs", "use crate::server::commit::change;"),
        ("server/waiting/wait_list.rs", "use crate::server::{config, serving};"),
        ("commands/send.rs", '#[path = "../server/commit.rs"]'),
    ],
)
def test_an_arrow_that_points_up_or_hides_fails(sources, file, line):
    path = sources / file
    path.write_text(path.read_text() + line + "\n")
    done = check(sources)
    assert done.returncode == 1
    assert line.strip() in done.stdout and "error:" in done.stderr


@pytest.fixture
def program(tmp_path):
    """Sources of the program dq, in which all is well."""
    for room in ("server", "model", "command", "web/page", "web/action", "top"):
        (tmp_path / room).mkdir(parents=True)
    (tmp_path / "text.rs").write_text("use crate::failure::Failure;\n")
    (tmp_path / "args.rs").write_text("use crate::command::find;\nuse crate::{top, web};\n")
    (tmp_path / "model/queue.rs").write_text("use crate::server::verb;\n")
    (tmp_path / "command/find.rs").write_text("use crate::model::queue;\n")
    (tmp_path / "top/mod.rs").write_text("use crate::model::queue;\n")
    (tmp_path / "web/answer.rs").write_text("use super::site::Site;\n")
    (tmp_path / "web/action/mod.rs").write_text("use crate::web::answer::Ask;\n")
    (tmp_path / "web/page/queue.rs").write_text("use crate::web::action::Action;\n")
    return tmp_path


def check_program(program):
    command = [ROOT / "scripts/layers.sh", "src", "crates/queue/src", program]
    return subprocess.run(command, capture_output=True, text=True)


def test_arrows_of_the_program_that_point_down_pass(program):
    done = check_program(program)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "file, line",
    [
        ("text.rs", "use crate::server::verb;"),
        ("model/queue.rs", "use crate::web::answer::Ask;"),
        ("command/find.rs", "use crate::args::Cli;"),
        ("top/mod.rs", "use crate::web::answer::Ask;"),
        ("web/answer.rs", "use super::page::layout;"),
        ("web/answer.rs", "use crate::web::action::Action;"),
        ("web/action/mod.rs", "use crate::web::page::layout;"),
        ("web/page/queue.rs", "use crate::web::serve::router;"),
    ],
)
def test_an_arrow_of_the_program_that_points_up_fails(program, file, line):
    path = program / file
    path.write_text(path.read_text() + line + "\n")
    done = check_program(program)
    assert done.returncode == 1 and line in done.stdout
