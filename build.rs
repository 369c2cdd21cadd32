//! Tells the module which revision of its sources it is built from: the
//! variable `DQ_REVISION`, read by `src/server/info.rs`.
//!
//! It is the commit, with `-dirty` where a file that the module is built from
//! differs from it. Where there is no git, or the sources lie in a repository
//! of somebody else, it is `unknown`; who builds from an archive can hand the
//! revision in, in a variable of the same name.

use std::env;
use std::path::Path;
use std::process::Command;

/// What the module is built from.
const SOURCES: [&str; 5] = [
    "src",
    "crates/queue",
    "Cargo.toml",
    "Cargo.lock",
    "build.rs",
];

/// Long enough to stay unique. Without a number git chooses one by the size of
/// the repository, and two clones of it would build different modules.
const DIGITS: &str = "--short=12";

fn main() {
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
    }
    println!("cargo:rerun-if-env-changed=DQ_REVISION");
    let given = env::var("DQ_REVISION").ok().filter(|text| !text.is_empty());
    let revision = given.or_else(committed).unwrap_or("unknown".into());
    println!("cargo:rustc-env=DQ_REVISION={revision}");
}

/// The commit of this directory, if it is the root of a repository.
fn committed() -> Option<String> {
    if !git(&["rev-parse", "--show-prefix"])?.is_empty() {
        return None;
    }
    // A commit changes the branch's file, a checkout HEAD. The folder stands for
    // a branch that has no file, because it is packed: its next commit makes one.
    for name in ["HEAD", "refs/heads", "packed-refs"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        // Cargo takes a missing file for a changed one, at every build.
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let commit = git(&["rev-parse", DIGITS, "HEAD"])?;
    let mut status = vec!["status", "--porcelain", "--"];
    status.extend(SOURCES);
    let clean = git(&status)?.is_empty();
    Some(commit + if clean { "" } else { "-dirty" })
}

/// What git prints, without the end of its line; nothing where it fails or is
/// not there.
fn git(args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // Set while git runs a hook, maybe one of another repository.
    command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    // Looking must not touch the index, which somebody may be using.
    let output = command
        .env("GIT_OPTIONAL_LOCKS", "0")
        .args(args)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
