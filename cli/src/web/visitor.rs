//! A visitor, and the proof that a form is the visitor's own.

use ring::digest;

use super::random::random;
use super::rights::Rights;

/// A visitor who asks for a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Visitor {
    /// The name. Empty if nobody has to sign in.
    pub user: String,
    /// The address of the connection.
    pub address: String,
    /// The token that a form of this visitor must contain to be accepted. Empty for a program,
    /// which has shown a token of its own.
    pub csrf: String,
    /// The rights of the visitor.
    pub rights: Rights,
}

impl Visitor {
    /// Returns whether it is a program with a token.
    pub fn is_program(&self) -> bool {
        self.csrf.is_empty()
    }

    /// Returns the value that a form of this visitor must contain. It looks different
    /// each time, so that the size of a packed page tells nothing about it.
    pub fn token(&self) -> String {
        // Without random numbers the program would not have started.
        let mask = random().unwrap_or_default();
        mask.clone() + &mixed(&mask, &self.csrf)
    }

    /// Returns whether a form contains the token of this visitor.
    pub fn accepts(&self, token: &[u8]) -> bool {
        let token = std::str::from_utf8(token).unwrap_or_default();
        let Some((mask, mixture)) = token.split_at_checked(token.len() / 2) else {
            return false;
        };
        // The time of comparing digests says nothing about the token.
        let digest = |text: &str| digest::digest(&digest::SHA256, text.as_bytes());
        let right = digest(&self.csrf).as_ref() == digest(&mixed(mask, mixture)).as_ref();
        right && !self.csrf.is_empty()
    }
}

/// Returns the exclusive or of two numbers in hexadecimal digits. Mixed once more with one of
/// them, it is the other.
fn mixed(one: &str, other: &str) -> String {
    let value = |c: char| c.to_digit(16).unwrap_or(0);
    let digits = one.chars().zip(other.chars());
    digits
        .filter_map(|(a, b)| char::from_digit(value(a) ^ value(b), 16))
        .collect()
}
