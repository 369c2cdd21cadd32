//! The commands: what a client sent becomes an operation of the core, and what
//! came of it a reply.
//!
//! `table/` says which commands there are and `parse/` what their arguments
//! mean. `execute.rs` is the one way in which anything changes a queue; the
//! other files hold the verbs.

mod alter;
mod apply;
mod change;
pub mod consumer;
mod create;
mod error;
pub mod execute;
mod fetch;
mod group;
mod handover;
mod info;
mod look;
mod outcome;
mod postpone;
mod schedule;
mod send;
mod settle;
pub mod spec;
pub mod table;
mod tick;
mod wait;
pub mod write;

use crate::ffi::{Args, CommandResult, Context};

/// What runs a command.
pub type Handler = fn(&mut Context, Args<'_>) -> CommandResult;
