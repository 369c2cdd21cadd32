//! Applies an operation to the queue in an open key, and commits the change.

use crate::redis::{Context, Value};
use dq_queue::codec::log_entry::{Creation, LogEntry};
use dq_queue::op::Sent;
use dq_queue::{Done, Error, Moment, Op};

use super::{Begun, Replication, Slot};
use crate::server::{clock, wakeups};

impl Slot<'_> {
    /// Applies an operation to the queue exactly as replicas will apply it, and commits the change
    /// with the beginning of the change. `then` gets what was done, before the commit; it does not
    /// run if the key holds no queue.
    ///
    /// Error: the operation is refused. Only what has begun before it is committed then.
    #[inline]
    pub fn apply<R>(
        &mut self,
        begun: Begun,
        op: &Op<'_>,
        then: impl FnOnce(&Context, &mut Value, &Done) -> R,
    ) -> Result<Option<R>, Error> {
        let (ctx, Some(queue)) = self.opened.split() else {
            return Ok(None);
        };
        let done = queue.apply(op, begun.moment);
        let result = match &done {
            Ok(done) => Ok(Some(then(ctx, queue, done))),
            Err(error) => Err(error.clone()),
        };
        let entry = replicated(op, done.as_ref().ok());
        let entry = LogEntry::of(begun.moment, begun.before, None, entry);
        self.commit(begun.moment, Replication::Entry(&entry));
        if let (Ok(done), (_, Some(queue))) = (done, self.opened.split()) {
            queue.take_back(done);
        }
        result
    }

    /// Like [`Slot::apply`], on a new queue that is put into the key.
    ///
    /// Error: the operation is refused. Then there is no queue.
    pub fn apply_to_new<R>(
        &mut self,
        creation: Creation,
        op: &Op<'_>,
        moment: Moment,
        then: impl FnOnce(&Context, &mut Value, &Done) -> R,
    ) -> Result<R, Error> {
        let mut queue = creation.queue();
        let done = queue.apply(op, moment)?;
        queue.made_at(moment);
        let ctx = self.opened.split().0;
        let queue = self.opened.create(queue);
        queue.notes.salt_term = wakeups::term();
        queue.notes.changed_term = wakeups::term();
        let result = then(ctx, queue, &done);
        let entry = LogEntry::of(moment, 0, Some(creation), replicated(op, Some(&done)));
        self.commit(moment, Replication::Entry(&entry));
        Ok(result)
    }
}

/// The form in which an operation is applied that generates ids: with a new salt, if none was drawn
/// for the queue in this term of the server. `None` if it is applied as it is.
#[inline]
pub fn renewing<'a>(queue: &Value, op: &Op<'a>) -> Option<Op<'a>> {
    match queue.notes.salt_term == wakeups::term() {
        true => None,
        false => op.with_new_salt(clock::random),
    }
}

/// The operation that a replica must apply. It differs from `op` if `op` was refused, did nothing,
/// or did nothing but count a duplicate.
pub fn replicated<'o, 'a>(op: &'o Op<'a>, done: Option<&Done>) -> &'o Op<'a> {
    match done {
        None => &Op::Tick,
        Some(done) if done.is_duplicate() => &Op::Duplicate,
        Some(done) if sent_nothing(done) => &Op::Tick,
        Some(_) => op,
    }
}

/// Whether IFGROUP has kept a SEND from doing anything.
pub fn sent_nothing(done: &Done) -> bool {
    matches!(done, Done::Sent(sent) if sent.first() == Some(&Sent::NoGroup))
}
