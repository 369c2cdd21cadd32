//! Reads single values out of a JSON payload, without building a tree.
//!
//! [`extract`] walks through a document once and keeps only the values at the
//! given [`Path`]s, borrowed from the payload. The payload itself is never
//! changed.

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
