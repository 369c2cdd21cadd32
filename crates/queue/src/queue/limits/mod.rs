//! The limits that keep groups from delivering after failures: breakers, and dead
//! messages that hold.

mod dead_holds;
mod failures;
mod named;
