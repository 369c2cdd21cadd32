//! Random numbers for sessions and tokens.

use ring::rand::{SecureRandom, SystemRandom};

use crate::failure::Failure;
use crate::text::hex;

/// Returns 32 random bytes as 64 digits.
pub fn random() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Failure::mistake("the system has no random numbers"))?;
    Ok(hex(bytes))
}
