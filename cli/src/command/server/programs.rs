//! Finds the server's program and the module.

use std::env;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Their places, seen from the directory of this program: in the bundles (`libexec`),
/// beside it, in the tar.gz of the module, and in the Debian package.
const BESIDE: [&str; 5] = [
    "../libexec/dq",
    ".",
    "../libexec",
    "..",
    "../lib/redis/modules",
];
const ENGINES: [&str; 2] = ["valkey-server", "redis-server"];
const MODULE: &str = match cfg!(target_os = "macos") {
    true => "libdq.dylib",
    false => "libdq.so",
};

/// The two files that a server needs.
pub struct Programs {
    /// The server.
    pub engine: PathBuf,
    /// The module.
    pub module: PathBuf,
}

impl Programs {
    /// Finds both: by the environment first, then beside this program, then on PATH.
    pub fn find() -> Result<Programs, Failure> {
        Programs::named(None, None)
    }

    /// Finds the ones that are not named.
    pub fn named(engine: Option<&Path>, module: Option<&Path>) -> Result<Programs, Failure> {
        let own = env::current_exe()
            .ok()
            // A program on PATH may be a link into the directory of a bundle.
            .and_then(|program| program.canonicalize().ok())
            .and_then(|program| program.parent().map(Path::to_owned));
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::split_paths(&path).collect::<Vec<_>>();
        let engine = search(
            engine,
            "DQ_ENGINE",
            &ENGINES,
            own.as_deref(),
            &path,
            "Valkey or Redis server",
            "Install one (on Debian: valkey-server or redis-server)",
        )?;
        let installed = [PathBuf::from("/usr/lib/redis/modules")];
        let module = search(
            module,
            "DQ_MODULE",
            &[MODULE],
            own.as_deref(),
            &installed,
            "module of dq",
            "`make build` makes it from the sources, and the bundles have it",
        )?;
        Ok(Programs { engine, module })
    }
}

/// Finds a file, or fails with all places that were searched.
fn search(
    told: Option<&Path>,
    variable: &str,
    names: &[&str],
    own: Option<&Path>,
    more: &[PathBuf],
    what: &str,
    advice: &str,
) -> Result<PathBuf, Failure> {
    let set = env::var_os(variable).filter(|value| !value.is_empty());
    let (source, named) = match told {
        Some(told) => ("the command line", Some(told.to_owned())),
        None => (variable, set.map(PathBuf::from)),
    };
    if let Some(named) = named {
        let named = std::path::absolute(&named).unwrap_or(named);
        return match named.is_file() {
            true => Ok(named),
            false => Err(Failure::mistake(format!(
                "{source} names {}, which is no file",
                named.display()
            ))),
        };
    }
    let beside = own
        .iter()
        .flat_map(|own| BESIDE.map(|place| own.join(place)));
    // Only the directories are resolved: Debian's redis-server is a link to another name.
    let places: Vec<PathBuf> = beside
        .chain(more.iter().cloned())
        .map(|place| place.canonicalize().unwrap_or(place))
        .collect();
    let found = places
        .iter()
        .flat_map(|place| names.iter().map(move |name| place.join(name)))
        .find(|file| file.is_file());
    if let Some(found) = found {
        return Ok(std::path::absolute(&found).unwrap_or(found));
    }
    let mut words = format!(
        "no {what} was found. dq looked for {} in",
        names.join(" and ")
    );
    for place in &places {
        let _ = write!(words, "\n  {}", place.display());
    }
    let _ = write!(
        words,
        "\n{advice}, or name one: {variable}=/path/to/{}",
        names[0]
    );
    Err(Failure::Mistake(words))
}
