//! Tests of arguments that several commands share in one table.

mod changes;
mod groups;
mod questions;
mod queue_options;
mod receipts;
