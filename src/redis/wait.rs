//! The condition that a blocked client waits for.

use super::{Context, Name, Reply};

/// The condition that a blocked client waits for. The server drops it shortly after the wait has
/// ended.
pub trait Wait: 'static {
    /// A key of this name exists now. The server calls this for every client that waits for the
    /// key, so it must be cheap. It must not change or replicate anything: Redis 7.0 would abort.
    fn appeared(&self, _ctx: &Context, _key: Name<'_>) {}

    /// The timeout is over, or CLIENT UNBLOCK has unblocked the client. Writes the reply.
    fn timed_out(&self, reply: Reply<'_>);

    /// The client waits no longer and gets no reply from the module: its connection is closed, its
    /// slot has left the node, or the server has become a replica.
    fn gone(&self) {}
}
