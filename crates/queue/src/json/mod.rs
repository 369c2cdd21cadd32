//! Values read out of a JSON payload, without a tree.
//!
//! [`extract`] walks a document once and keeps only what the given [`Path`]s
//! ask for, borrowed from the payload. The payload itself is never changed.

mod error;
mod extract;
#[cfg(test)]
mod model;
mod path;
mod scalar;
#[cfg(test)]
mod tests;

pub use error::JsonError;
pub use extract::{extract, MAX_DEPTH};
pub use path::Path;
pub use scalar::Scalar;
