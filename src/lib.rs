//! A durable, ordered delay queue as a native Redis data type.
//!
//! The way of a command: [`ffi`] takes it from the server and hands it to its
//! handler in [`command`], which parses it, runs the operation and writes
//! reply and record. What time does comes the same way from the timer in
//! [`runtime`].

#![deny(unsafe_code)]

mod command;
mod config;
mod ffi;
mod runtime;
