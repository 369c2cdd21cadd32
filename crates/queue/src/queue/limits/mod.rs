//! What keeps groups from giving after failures: breakers, and dead messages that
//! hold.

mod dead_holds;
mod failures;
mod named;
