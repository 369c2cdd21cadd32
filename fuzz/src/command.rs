//! The arguments of commands.

#[path = "../../src/command/parse/mod.rs"]
pub mod parse;
