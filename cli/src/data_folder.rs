//! The folder in which programs of this user keep their data.

use std::env;
use std::path::{Path, PathBuf};

/// Returns the folder `dq` there, as the XDG Base Directory Specification names it. There is none
/// without a home directory.
pub fn data_folder() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    let base = match (set("XDG_DATA_HOME"), set("HOME")) {
        (Some(base), _) => PathBuf::from(base),
        (None, home) => Path::new(&home?).join(".local/share"),
    };
    Some(base.join("dq"))
}
