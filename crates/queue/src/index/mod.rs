//! The indexes of a queue, which find the next message.

pub mod batches;
pub mod dedup_ids;
pub mod fair_line;
pub mod first_dues;
pub mod held;
pub mod lane;
pub mod leases;
pub mod order_key;
pub mod pending_key;
pub mod ready_line;
pub mod records;
pub mod siblings;
pub mod waiting;
