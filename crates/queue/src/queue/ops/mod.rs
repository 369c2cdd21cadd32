//! What a client can ask of a queue: one file for each verb.

mod ack;
mod acksend;
mod alter;
mod cancel;
mod end_leases;
pub(super) mod fetch;
mod find_do;
pub(super) mod grace;
mod groupset;
pub(super) mod nack;
mod pause;
pub(super) mod redrive;
mod reschedule;
mod resume;
mod round;
mod schedule;
pub(super) mod send;
mod touch;
mod unschedule;
mod update;
