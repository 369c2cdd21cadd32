//! The file of passwords.

use std::collections::HashMap;
use std::path::Path;

use super::access::NAME;
use crate::failure::Failure;
use crate::secret;

/// Reads a password file, as `htpasswd -B` writes it: `name:hash` in each line.
pub fn read(path: &Path) -> Result<HashMap<String, String>, Failure> {
    let shown = path.display();
    let text = String::from_utf8(secret::read(path)?)
        .map_err(|_| Failure::mistake(format!("{shown}: this is no text")))?;
    let mut users = HashMap::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, hash) = line.split_once(':').unwrap_or_default();
        if name.is_empty() || !["$2a$", "$2b$", "$2y$"].iter().any(|p| hash.starts_with(p)) {
            return Err(Failure::mistake(format!(
                "{shown}, line {}: expected name:hash with a hash of bcrypt, as `dq web \
                 --hash-password NAME` or `htpasswd -nB NAME` prints it",
                i + 1
            )));
        }
        if name.len() > NAME {
            let line = i + 1;
            return Err(Failure::mistake(format!(
                "{shown}, line {line}: a name has at most {NAME} bytes"
            )));
        }
        users.insert(name.to_owned(), hash.to_owned());
    }
    match users.is_empty() {
        true => Err(Failure::mistake(format!("{shown}: no users"))),
        false => Ok(users),
    }
}

/// Returns a line of a password file.
pub fn line(user: &str, password: &[u8]) -> Result<String, Failure> {
    if user.is_empty() || user.contains([':', '\n']) {
        return Err(Failure::mistake("a user's name has no colon"));
    }
    if user.len() > NAME {
        let why = format!("a user's name has at most {NAME} bytes");
        return Err(Failure::mistake(why));
    }
    if password.len() < 8 || password.len() > 72 {
        return Err(Failure::mistake("a password has 8 to 72 bytes"));
    }
    let hash = bcrypt::hash(password, 11).map_err(|error| Failure::mistake(error.to_string()))?;
    Ok(format!("{user}:{hash}"))
}
