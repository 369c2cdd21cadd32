//! The file of passwords, tokens and roles.

use std::collections::HashMap;
use std::path::Path;

use ring::digest;

use super::access::NAME;
use super::random::random;
use super::rights::Rights;
use crate::failure::Failure;
use crate::secret;
use crate::text::hex;

/// The begin of a hash of a token. A token is random, so one round of SHA-256 is enough.
const TOKEN: &str = "token$";

/// The users of a file.
#[derive(Debug, Default)]
pub struct Users {
    /// The hashes of passwords and the rights, by name. The hashes are those of bcrypt.
    pub by_name: HashMap<String, (String, Rights)>,
    /// The names and rights of programs, by the hashes of their tokens.
    pub by_token: HashMap<String, (String, Rights)>,
}

impl Users {
    /// Returns the name and the rights of the program that has a token.
    pub fn of_token(&self, token: &str) -> Option<&(String, Rights)> {
        self.by_token.get(&hashed(token))
    }
}

fn hashed(token: &str) -> String {
    hex(digest::digest(&digest::SHA256, token.as_bytes()).as_ref())
}

/// Reads a password file: `name:hash` in each line, as `htpasswd -B` writes it, with `:role` and
/// `:globs of queues` behind it where somebody has not all rights.
pub fn read(path: &Path) -> Result<Users, Failure> {
    let shown = path.display();
    let text = String::from_utf8(secret::read(path)?)
        .map_err(|_| Failure::mistake(format!("{shown}: this is no text")))?;
    let mut users = Users::default();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| Failure::mistake(format!("{shown}, line {}: {what}", i + 1));
        let mut parts = line.splitn(3, ':');
        let (name, hash) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
        );
        if name.len() > NAME {
            return Err(wrong(&format!("a name has at most {NAME} bytes")));
        }
        let rights = Rights::parse(parts.next().unwrap_or_default());
        let rights = rights.map_err(|why| wrong(&why.to_string()))?;
        if let (Some(hash), false) = (hash.strip_prefix(TOKEN), name.is_empty()) {
            users
                .by_token
                .insert(hash.to_owned(), (name.to_owned(), rights));
            continue;
        }
        if name.is_empty() || !["$2a$", "$2b$", "$2y$"].iter().any(|p| hash.starts_with(p)) {
            return Err(wrong(
                "expected name:hash with a hash of bcrypt, as `dq web --hash-password NAME` or \
                 `htpasswd -nB NAME` prints it, or of a token, as `dq web --new-token NAME` does",
            ));
        }
        users
            .by_name
            .insert(name.to_owned(), (hash.to_owned(), rights));
    }
    match users.by_name.is_empty() && users.by_token.is_empty() {
        true => Err(Failure::mistake(format!("{shown}: no users"))),
        false => Ok(users),
    }
}

/// Returns a line of a password file.
pub fn line(user: &str, password: &[u8]) -> Result<String, Failure> {
    check_name(user)?;
    if password.len() < 8 || password.len() > 72 {
        return Err(Failure::mistake("a password has 8 to 72 bytes"));
    }
    let hash = bcrypt::hash(password, 11).map_err(|error| Failure::mistake(error.to_string()))?;
    Ok(format!("{user}:{hash}"))
}

/// Returns a new token for a program, and its line of a password file.
pub fn token(user: &str) -> Result<(String, String), Failure> {
    check_name(user)?;
    let token = random()?;
    let line = format!("{user}:{TOKEN}{}", hashed(&token));
    Ok((token, line))
}

fn check_name(user: &str) -> Result<(), Failure> {
    if user.is_empty() || user.contains([':', '\n']) {
        return Err(Failure::mistake("a user's name has no colon"));
    }
    match user.len() > NAME {
        true => Err(Failure::mistake(format!(
            "a user's name has at most {NAME} bytes"
        ))),
        false => Ok(()),
    }
}
