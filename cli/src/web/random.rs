//! Random numbers for sessions and tokens.

use ring::rand::{SecureRandom, SystemRandom};

use crate::failure::Failure;

/// Returns 32 random bytes as 64 digits.
pub fn random() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Failure::mistake("the system has no random numbers"))?;
    Ok(hex(&bytes))
}

/// Returns bytes as digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
