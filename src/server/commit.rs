//! The one way in which anything changes a queue.
//!
//! [`change`] opens the key, hands its [`Slot`] to the code that applies an operation, and
//! publishes events when the key is closed. [`Slot::commit`] is called after each change: it
//! replicates, signals the key, and schedules what follows. Commands come through [`run`];
//! the timer, blocked clients and replay call [`change`] themselves.

use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::redis::{CommandResult, Context, KeyWrite, Name, Reply, WrongType};
use dq_queue::codec::log_entry::{Creation, LogEntry};
use dq_queue::codec::verbatim;
use dq_queue::family;
use dq_queue::op::{DueTime, Effects, Ending, Fetch, Happened, Sent};
use dq_queue::settings::{Changes, Clock, Settings};
use dq_queue::{Done, Millis, Moment, Op, Queue, NEVER};

use super::blocked_fetch::wait_list;
use super::families;
use super::{blocked_wait, clock, config, errors, wakeups};

/// The maximum number of steps that a command spends on due events before its own operation. The
/// timer processes the rest.
const EVENTS_PER_COMMAND: u64 = 512;
/// The maximum number of steps for commands within [`BURST_US`] after a command that took more than
/// this. In a large burst, many commands one after the other must not block the server.
const EVENTS_PER_COMMAND_IN_BURST: u64 = 16;
/// How long after a large slice commands take only small ones, in microseconds.
const BURST_US: u64 = 1000;
/// The maximum number of removed messages that a command frees.
const FREED_BY_A_COMMAND: usize = 64;

/// What an operation does if the key does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Creates a queue with the module's defaults.
    Create,
    /// Changes nothing and replies as an empty queue does.
    Nothing,
    /// Replies with an error.
    Refuse,
}

/// The form in which a command may be replicated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a log entry, with its moment.
    Entry,
    /// Verbatim if the command carries all that a replica needs (see [`command`]), otherwise as a
    /// log entry.
    Verbatim,
}

/// How a change reaches replicas and the append-only file.
pub enum Replication<'r, 'o, 'a> {
    /// As this log entry.
    Entry(&'r LogEntry<'o, 'a>),
    /// As the running command, verbatim.
    Verbatim,
    /// Not by this change: the command that is being replayed has been replicated already.
    Replayed,
    /// Like `Replayed`, and the change has put a whole queue into the key.
    Restored,
}

/// A key that is open for a change.
pub struct Slot<'c> {
    opened: KeyWrite<'c>,
    key: Name<'c>,
    happened: Happened,
    ended: Vec<Ending>,
}

/// What is to be published once the keys of a change are closed.
pub struct Aftermath<'c> {
    key: Name<'c>,
    happened: Happened,
    ended: Vec<Ending>,
}

/// Opens a key, runs `apply` to change the queue in it, and closes the key. Then it publishes
/// events and answers clients that wait for the end of a message, both of which may run code of
/// other modules.
///
/// Error: the key holds another type. Then `apply` does not run.
#[inline]
pub fn change<R>(
    ctx: &mut Context,
    key: Name<'_>,
    apply: impl FnOnce(&mut Slot<'_>) -> R,
) -> Result<R, WrongType> {
    let (result, aftermath) = change_silently(ctx, key, apply)?;
    aftermath.publish(ctx);
    Ok(result)
}

/// Like [`change`], but publishes nothing yet: a change of several queues publishes when all of
/// them have changed.
#[inline]
pub fn change_silently<'c, R>(
    ctx: &mut Context,
    key: Name<'c>,
    apply: impl FnOnce(&mut Slot<'_>) -> R,
) -> Result<(R, Aftermath<'c>), WrongType> {
    let mut slot = Slot {
        opened: ctx.open_write(key)?,
        key,
        happened: Happened::default(),
        ended: Vec::new(),
    };
    let result = apply(&mut slot);
    let aftermath = Aftermath {
        key,
        happened: slot.happened,
        ended: std::mem::take(&mut slot.ended),
    };
    // The key is closed at the end of this block.
    Ok((result, aftermath))
}

impl Slot<'_> {
    /// The server, and the queue if the key holds one.
    #[inline]
    pub fn split(&mut self) -> (&Context, Option<&mut Queue>) {
        self.opened.split()
    }

    /// Puts a queue into the key. It replaces the queue that the key may hold.
    pub fn create(&mut self, queue: Queue) -> &mut Queue {
        self.opened.create(queue)
    }

    /// Completes a change of the queue that was made at `moment`: replicates it, signals the key,
    /// and schedules blocked clients and the timer. Does nothing if the key holds no queue.
    pub fn commit(&mut self, moment: Moment, replication: Replication<'_, '_, '_>) {
        let key = self.key;
        let (ctx, Some(queue)) = self.opened.split() else {
            return;
        };
        let Effects {
            changed,
            visible,
            happened,
            endings,
        } = queue.take_effects();
        match replication {
            Replication::Entry(entry) if changed => match ctx.needs_log_entries() {
                true => replicate(ctx, key, entry),
                false => ctx.replicate_verbatim(),
            },
            Replication::Verbatim if changed => ctx.replicate_verbatim(),
            _ => {}
        }
        match replication {
            Replication::Entry(_) | Replication::Verbatim if !changed => {}
            // The moment may be one of a manual clock, which is unrelated to receipts.
            Replication::Replayed => {
                clock::saw_receipt(queue.last_receipt(), moment.us.max(clock::now().us));
            }
            _ => clock::saw_receipt(queue.last_receipt(), moment.us),
        }
        if visible || matches!(replication, Replication::Restored) {
            ctx.signal_modified(key);
        }
        if queue.has_garbage() {
            queue.free_garbage(FREED_BY_A_COMMAND);
        }
        schedule(ctx, key, queue, moment);
        self.happened.add(happened);
        self.ended.extend(endings);
    }
}

/// Schedules the timer for the queue's next event, and the queue's wait list if messages are ready.
fn schedule(ctx: &Context, key: Name<'_>, queue: &mut Queue, moment: Moment) {
    let is_awaited = wait_list::total() > 0 && wait_list::is_awaited(ctx.db(), key.bytes());
    let now = queue.now(moment);
    let is_of_family = families::is_active() && family::of_key(key.bytes()).is_some();
    if is_of_family {
        let may_give = |no_ack| {
            let fetch = Fetch {
                no_ack,
                ..Fetch::one()
            };
            queue.can_serve(&fetch, now)
        };
        families::update(ctx.db(), key.bytes(), [may_give(false), may_give(true)]);
    }
    // A queue of a family enters the order of turns again when its RATE allows a delivery.
    let wake = match queue.next_wake(now, is_awaited || is_of_family) {
        Some(wake) => wake.max(now),
        None => NEVER,
    };
    // A full MAXRUNNING does not prevent this, because it does not limit clients with NOACK.
    if is_awaited && queue.has_ready(now) {
        wait_list::schedule(ctx.db(), key.bytes());
    }
    if queue.noted_wake.is_none_or(|noted| wake < noted) {
        queue.noted_wake = Some(wake);
        wakeups::schedule(ctx, ctx.db(), key.bytes(), wake);
    }
}

/// Runs an operation on the queue of a key, and replicates it as a log entry. `reply` gets the
/// queue after the operation and its outcome, or `None` if there is no queue.
///
/// Errors: the key holds another type, there is no queue and `missing` is [`Missing::Refuse`], or
/// the queue refuses the operation. Then `reply` does not run.
#[inline]
pub fn run(
    ctx: &mut Context,
    key: Name<'_>,
    op: &Op<'_>,
    missing: Missing,
    reply: impl FnOnce(Reply<'_>, Option<(&Queue, &Done)>),
) -> CommandResult {
    run_in_form(ctx, key, op, missing, Form::Entry, reply)
}

/// Like [`run`], but may replicate the command verbatim (see [`Form`]).
pub fn run_in_form(
    ctx: &mut Context,
    key: Name<'_>,
    op: &Op<'_>,
    missing: Missing,
    form: Form,
    reply: impl FnOnce(Reply<'_>, Option<(&Queue, &Done)>),
) -> CommandResult {
    let moment = moment_of(op);
    change(ctx, key, |slot| match slot.split() {
        (_, Some(_)) => run_on_queue(slot, op, moment, form, reply),
        (ctx, None) => match missing {
            // A queue that does not exist has no group.
            Missing::Create if !needs_group(op) => run_on_new_queue(slot, op, moment, reply),
            Missing::Refuse => Err(errors::NO_SUCH_QUEUE.into()),
            Missing::Create | Missing::Nothing => {
                reply(ctx.reply(), None);
                Ok(())
            }
        },
    })?
}

/// Whether an operation does nothing unless a group has messages.
fn needs_group(op: &Op<'_>) -> bool {
    matches!(op, Op::Send(send) if send.if_group)
}

/// Whether IFGROUP has kept a SEND from doing anything.
fn sent_nothing(done: &Done) -> bool {
    matches!(done, Done::Sent(sent) if sent.first() == Some(&Sent::NoGroup))
}

fn run_on_queue(
    slot: &mut Slot<'_>,
    op: &Op<'_>,
    moment: Moment,
    form: Form,
    reply: impl FnOnce(Reply<'_>, Option<(&Queue, &Done)>),
) -> CommandResult {
    let (ctx, Some(queue)) = slot.split() else {
        return Ok(());
    };
    let steps = process_due_events(queue, moment);
    let renewing = queue.renewing(op, wakeups::term(), clock::random);
    let op = renewing.as_ref().unwrap_or(op);
    let verbatim = match form {
        Form::Verbatim if steps == 0 && ctx.may_replicate_verbatim() => {
            verbatim::moment(queue, op, moment, clock::last_receipt())
        }
        _ => None,
    };
    let result = queue.apply(op, verbatim.unwrap_or(moment));
    if let Ok(done) = &result {
        if renewing.is_some() && !sent_nothing(done) {
            queue.noted_term = wakeups::term();
        }
        reply(ctx.reply(), Some((queue, done)));
    }
    match (verbatim, &result) {
        (Some(_), Ok(_)) => slot.commit(moment, Replication::Verbatim),
        (_, done) => {
            let entry = LogEntry::of(moment, steps, None, replicated(op, done.as_ref().ok()));
            slot.commit(moment, Replication::Entry(&entry));
        }
    }
    match (result, slot.split().1) {
        (Err(error), _) => Err(errors::reply_for(&error)),
        (Ok(done), Some(queue)) => {
            queue.take_back(done);
            Ok(())
        }
        (Ok(_), None) => Ok(()),
    }
}

/// Runs an operation that depends on what the queue holds once its due events are processed:
/// `choose` gets the queue and its time, and returns the operation and a value for `reply`. The
/// operation may not be refused, nor send. `reply` gets the outcome and that value, or `None` where
/// there is no queue.
pub fn run_chosen<T>(
    ctx: &mut Context,
    key: Name<'_>,
    choose: impl FnOnce(&Queue, Millis) -> (Op<'static>, T),
    reply: impl FnOnce(Reply<'_>, Option<(&Done, T)>),
) -> CommandResult {
    let moment = clock::now();
    change(ctx, key, |slot| {
        let (ctx, Some(queue)) = slot.split() else {
            reply(slot.split().0.reply(), None);
            return Ok(());
        };
        let steps = process_due_events(queue, moment);
        let (op, value) = choose(queue, queue.now(moment));
        let done = queue
            .apply(&op, moment)
            .map_err(|error| errors::reply_for(&error))?;
        reply(ctx.reply(), Some((&done, value)));
        let entry = LogEntry::of(moment, steps, None, &op);
        slot.commit(moment, Replication::Entry(&entry));
        Ok(())
    })?
}

fn run_on_new_queue(
    slot: &mut Slot<'_>,
    op: &Op<'_>,
    moment: Moment,
    reply: impl FnOnce(Reply<'_>, Option<(&Queue, &Done)>),
) -> CommandResult {
    let creation = creation(&Changes::default(), Clock::Server);
    let mut queue = creation.queue();
    let done = queue
        .apply(op, moment)
        .map_err(|error| errors::reply_for(&error))?;
    reply(slot.split().0.reply(), Some((&queue, &done)));
    queue.made_at(moment);
    queue.noted_term = wakeups::term();
    slot.create(queue);
    let entry = LogEntry::of(moment, 0, Some(creation), replicated(op, Some(&done)));
    slot.commit(moment, Replication::Entry(&entry));
    Ok(())
}

/// The moment of an operation that runs now. It may be some microseconds old for frequent
/// operations without a delay. A delay counts from the exact time, so that nothing is delivered
/// early.
fn moment_of(op: &Op<'_>) -> Moment {
    let may_be_recent = match op {
        Op::Send(send) => send.due == DueTime::Now,
        Op::Fetch(_) | Op::Ack { .. } | Op::AckEach { .. } => true,
        _ => false,
    };
    match may_be_recent {
        true => clock::recent(),
        false => clock::now(),
    }
}

/// The creation of a queue with the module's defaults and these changes to them.
pub fn creation(changes: &Changes, clock: Clock) -> Creation {
    let defaults = Settings {
        lease: config::LEASE.unsigned(),
        retries: config::RETRIES.get(),
        retain: config::RETAIN.unsigned(),
        retain_count: config::RETAIN_COUNT.unsigned(),
        ..Settings::default()
    };
    Creation {
        settings: defaults.with(changes),
        clock,
        salt: clock::random(),
    }
}

/// Processes due events before a command, up to the limits above. Returns the number of steps it
/// took. It does nothing if the time of a schedule was missed: the timer handles that in a log
/// entry of its own.
#[inline]
pub fn process_due_events(queue: &mut Queue, moment: Moment) -> u64 {
    let now = queue.now(moment);
    if !queue.has_work(now) || queue.has_missed(wakeups::firing_since(queue, now)) {
        return 0;
    }
    static LAST_LARGE_US: AtomicU64 = AtomicU64::new(0);
    if moment.us < LAST_LARGE_US.load(Relaxed) + BURST_US {
        return queue.advance(now, EVENTS_PER_COMMAND_IN_BURST).steps;
    }
    let steps = queue.advance(now, EVENTS_PER_COMMAND).steps;
    if steps > EVENTS_PER_COMMAND_IN_BURST {
        LAST_LARGE_US.store(moment.us, Relaxed);
    }
    steps
}

/// The operation that a replica must apply. It differs from `op` if `op` was refused, did nothing,
/// or did nothing but count a duplicate.
fn replicated<'o, 'a>(op: &'o Op<'a>, done: Option<&Done>) -> &'o Op<'a> {
    match done {
        None => &Op::Tick,
        Some(Done::Sent(sent)) if sent.first() == Some(&Sent::Taken) => &Op::Duplicate,
        Some(done) if sent_nothing(done) => &Op::Tick,
        Some(_) => op,
    }
}

impl Aftermath<'_> {
    /// Publishes events and answers clients that wait for the end of a message.
    #[inline]
    pub fn publish(self, ctx: &mut Context) {
        if !self.happened.is_empty() && ctx.wants_events() {
            for (kind, name) in EVENTS {
                if self.happened.has(kind) {
                    ctx.notify_event(name, self.key);
                }
            }
        }
        for ending in self.ended {
            blocked_wait::answer(ctx.db(), self.key.bytes(), ending);
        }
    }
}

/// The events in the order in which they are published: a cause comes before its effects.
const EVENTS: [(Happened, &CStr); 10] = [
    (Happened::SENT, c"dq.sent"),
    (Happened::ACKED, c"dq.acked"),
    (Happened::NACKED, c"dq.nacked"),
    (Happened::NOTED, c"dq.noted"),
    (Happened::TIMEOUT, c"dq.timeout"),
    (Happened::DEAD, c"dq.dead"),
    (Happened::CANCELLED, c"dq.cancelled"),
    (Happened::BREAKER, c"dq.breaker"),
    (Happened::READY, c"dq.ready"),
    (Happened::DELIVERED, c"dq.delivered"),
];

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The capacity in bytes above which the buffer is freed after use.
const KEPT_BUFFER: usize = 64 * 1024;

fn replicate(ctx: &Context, key: Name<'_>, entry: &LogEntry<'_, '_>) {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        entry.encode_into(buffer);
        ctx.replicate(key, buffer);
        if buffer.capacity() > KEPT_BUFFER {
            *buffer = Vec::new();
        }
    });
}
