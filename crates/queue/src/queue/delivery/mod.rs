//! The messages that a queue can deliver, their order, and the way of a message back into
//! it.
//!
//! `heads.rs` says what a group delivers next, `positions.rs` keeps the ready line in step,
//! `readiness.rs` answers the questions of the server, `give_back.rs` brings a running message back, and `repeat.rs` gives the deliveries of a FETCH whose
//! reply was lost once more.

pub(super) mod fair;
pub(super) mod give_back;
mod heads;
mod positions;
mod readiness;
mod repeat;
