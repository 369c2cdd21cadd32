//! All states of small queues, breadth first.
//!
//! A [`world::World`] is a few queues on one server. A list ([`lists`]) is a handful of commands
//! that meet in it. The [`search`] does each of them in each state that it has reached, and checks
//! every state and every step ([`check`]). What it finds is the shortest path to a fault, as
//! commands to paste into redis-cli.

#[cfg(feature = "bugs")]
pub mod bugs;
pub mod check;
pub mod lists;
pub mod pairs;
pub mod paste;
pub mod path;
pub mod run;
pub mod search;
pub mod store;
pub mod walk;
pub mod world;
