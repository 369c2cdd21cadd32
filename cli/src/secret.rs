//! Files with passwords and keys, which others must not be able to change, and had better
//! not read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::failure::Failure;

/// The files about which a warning has been given. A connection that is made again reads
/// them again.
static WARNED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Reads a file with a secret. Fails if everybody may change the file, and warns once if
/// everybody may read it.
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let shown = path.display();
    let error = |error: std::io::Error| Failure::mistake(format!("{shown}: {error}"));
    let (others_read, others_write) = rights(path).map_err(error)?;
    if others_write {
        return Err(Failure::mistake(format!(
            "{shown}: everybody may change this file: chmod o-w {shown}"
        )));
    }
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    if others_read && warned.insert(path.to_owned()) {
        eprintln!("dq: warning: {shown}: everybody may read this file: chmod o-r {shown}");
    }
    drop(warned);
    std::fs::read(path).map_err(error)
}

/// Reads a password: the first line of a file.
pub fn password(path: &Path) -> Result<String, Failure> {
    let text = read(path)?;
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match std::str::from_utf8(line) {
        Ok(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(Failure::mistake(format!(
            "{}: expected a password in the first line",
            path.display()
        ))),
    }
}

/// Returns whether everybody may read the file, and change it.
#[cfg(unix)]
fn rights(path: &Path) -> std::io::Result<(bool, bool)> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path)?.permissions().mode();
    Ok((mode & 0o004 != 0, mode & 0o002 != 0))
}

#[cfg(not(unix))]
fn rights(path: &Path) -> std::io::Result<(bool, bool)> {
    std::fs::metadata(path).map(|_| (false, false))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_everybody_may_change_is_refused() {
        let path = std::env::temp_dir().join(format!("dq-secret-{}", std::process::id()));
        std::fs::write(&path, "pa55\r\nmore\n").unwrap();
        for (mode, accepted) in [(0o600, true), (0o640, true), (0o644, true), (0o606, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path).is_ok(), accepted, "{mode:o}");
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(password(&path), Ok("pa55".to_owned()));
        std::fs::write(&path, "\n").unwrap();
        assert!(password(&path).is_err());
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path).is_err());
    }
}
