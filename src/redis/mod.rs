//! A thin, safe layer over the module API: the only unsafe code of the module. It imports nothing
//! from the layers above it: they hand in their handlers and tables as a [`Module`].
//!
//! The server calls `extern "C"` functions in [`entry`], [`value`], [`blocking`], [`timer`],
//! [`events`], [`event_loop`], [`info`] and [`config`]. Each of them goes through [`guard`], so a
//! panic becomes an error reply and never ends the server.
//!
//! The interface for the rest of the module is safe:
//!
//! - [`Context`] is the server during one call. It cannot leave the thread.
//! - Opening a key borrows the context mutably. All calls that can run code of other modules
//!   (opening another key, publishing an event) needs the same borrow. So no queue is borrowed
//!   while other code could change it.
//! - A [`Name`] or an argument lives as long as the call that it belongs to.

#![allow(unsafe_code)]

use redis_module::raw;

/// Calls a function of the module API. The module refuses to load into a server that lacks a
/// function that it needs. If a later server drops one anyway, the call panics, which [`guard`]
/// contains.
macro_rules! api {
    ($name:ident($($arg:expr),* $(,)?)) => {
        match raw::$name {
            Some(function) => function($($arg),*),
            None => $crate::redis::missing(stringify!($name)),
        }
    };
}

pub mod acl;
mod advice;
#[cfg(target_os = "linux")]
mod alarm;
#[cfg(not(target_os = "linux"))]
mod no_alarm;
#[cfg(not(target_os = "linux"))]
use no_alarm as alarm;
// Unit tests run without a server, on the system's allocator.
#[cfg(not(test))]
mod alloc;
mod args;
pub mod background;
pub mod blocking;
pub mod call;
pub mod clock;
mod config;
mod context;
pub mod deadlines;
mod docs;
mod entry;
pub mod event_loop;
pub mod events;
mod facts;
pub mod faults;
mod followers;
mod guard;
pub mod info;
mod key;
mod log;
mod log_entries;
pub mod memory;
mod name;
mod notes;
mod own_slots;
mod queue_clock;
mod registration;
mod replays;
mod reply;
mod setting;
mod slots;
pub mod spec;
pub mod stream;
mod text_setting;
pub mod timer;
pub mod user_rules;
mod value;
pub mod wait;
mod write_refusal;

pub use args::Args;
pub use context::Context;
pub use entry::{on_load, Module};
pub use facts::Keeping;
pub use key::{KeyWrite, WrongType};
pub use log::warn;
pub use name::{Name, OwnedName};
pub use own_slots::OwnSlots;
pub use registration::calls;
pub use reply::{CommandResult, Failure, Reply};
pub use setting::Setting;
pub use text_setting::TextSetting;
pub use value::Value;

#[cold]
fn missing(name: &str) -> ! {
    panic!("the server has no {name}")
}
