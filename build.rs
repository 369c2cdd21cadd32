//! Sets `DQ_REVISION` to the revision of the sources that the module is built from.
//! `src/server/info.rs` reads it.
//!
//! The revision is the commit, with `-dirty` after it if a source file of the module differs from
//! the commit. It is `unknown` if there is no git, or if the sources are inside another project's
//! repository. A build from an archive can set the environment variable `DQ_REVISION` instead.

use std::env;
use std::path::Path;
use std::process::Command;

/// The files and folders that the module is built from.
const SOURCES: [&str; 6] = [
    "src",
    "crates/queue",
    "cli/warnings",
    "Cargo.toml",
    "Cargo.lock",
    "build.rs",
];

/// The length of the abbreviated commit, which is enough to keep it unique. Without a length git
/// chooses one by the size of the repository, so two clones could build different modules.
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

/// The commit that is checked out, or `None` if this directory is not the root of a repository.
fn committed() -> Option<String> {
    if !git(&["rev-parse", "--show-prefix"])?.is_empty() {
        return None;
    }
    // A commit changes the file of the branch, and a checkout changes HEAD. A packed branch has no
    // file: its next commit creates one, which changes the folder.
    for name in ["HEAD", "refs/heads", "packed-refs"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        // Cargo treats a missing file as changed, at every build.
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

/// Runs git. Returns its output without the trailing line end, or `None` if git fails or is
/// missing.
fn git(args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // Git sets these while it runs a hook, which may belong to another repository.
    command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    // Git must not refresh the index, because another process may be using it.
    let output = command
        .env("GIT_OPTIONAL_LOCKS", "0")
        .args(args)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
