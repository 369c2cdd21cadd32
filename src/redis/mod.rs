//! The only code that is unsafe: a thin, safe layer over the module API. It imports nothing of the
//! layers above it: handlers and tables are handed in as a [`Module`].
//!
//! The server calls `extern "C"` functions in [`entry`], [`value`],
//! [`blocking`], [`timer`], [`events`], [`event_loop`], [`info`] and [`config`];
//! each goes through [`guard`], so that a bug answers an error and never ends
//! the server.
//! What the rest of the module sees is safe:
//!
//! - [`Context`] is the server during one call. It cannot leave the thread.
//! - A key is opened by borrowing the context mutably. Whatever can run other
//!   people's code (opening another key, publishing an event) needs the same
//!   borrow, so no queue is borrowed while somebody else could change it.
//! - A [`Name`] or an argument lives as long as the call that brought it.

#![allow(unsafe_code)]

use redis_module::raw;

/// Calls a function of the module API. Load refuses a server that lacks one
/// of those that are needed, so the other arm is for functions that some
/// server drops later: a contained panic instead of a jump to nowhere.
macro_rules! api {
    ($name:ident($($arg:expr),* $(,)?)) => {
        match raw::$name {
            Some(function) => function($($arg),*),
            None => $crate::redis::missing(stringify!($name)),
        }
    };
}

// Unit tests run without a server, on the system's allocator.
#[cfg(not(test))]
mod alloc;
mod args;
pub mod blocking;
pub mod clock;
mod config;
mod context;
pub mod deadlines;
mod docs;
mod entry;
pub mod event_loop;
pub mod events;
mod followers;
mod guard;
pub mod info;
mod key;
mod log;
mod name;
mod queue_clock;
mod records;
mod registration;
mod reply;
mod setting;
mod slots;
pub mod spec;
pub mod timer;
mod value;

pub use args::Args;
pub use context::Context;
pub use entry::{on_load, Module};
pub use key::{KeyWrite, WrongType};
pub use log::warn;
pub use name::{Name, OwnedName};
pub use registration::calls;
pub use reply::{CommandResult, Failure, Reply};
pub use setting::Setting;

#[cold]
fn missing(name: &str) -> ! {
    panic!("the server has no {name}")
}
