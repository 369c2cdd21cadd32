//! The module's core and codec, compiled without the server, and queues to
//! measure them on.

#![allow(dead_code, clippy::len_without_is_empty, clippy::new_without_default)]

#[path = "../../../src/core/mod.rs"]
pub mod core;
#[path = "../../../fuzz/src/ffi.rs"]
pub mod ffi;
#[path = "../../../src/persist/mod.rs"]
pub mod persist;

pub mod driver;
