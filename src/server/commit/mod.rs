//! The only way to change a queue.
//!
//! [`change`] opens the key, hands its [`Slot`] to the code that applies an operation, and
//! publishes events when the key is closed. [`Slot::commit`] is called after each change: it
//! replicates, signals the key, and schedules what follows. Commands come through [`run`];
//! the timer, blocked clients and replay call [`change`] themselves.

mod aftermath;
mod apply;
mod begin;
pub mod event_stream;
mod keyspace;
mod refused;
mod replication;
mod run;

use crate::redis::{faults, Context, KeyWrite, Name, Value, WrongType};
use dq_queue::codec::log_entry::Creation;
use dq_queue::op::{Effects, Happened};
use dq_queue::quote::quote;
use dq_queue::settings::{Changes, Clock, Settings};
use dq_queue::{Moment, Op, Queue, NEVER};

use super::due_index::Due;
use super::families;
use super::moving_slots::{self, May};
use super::waiting::wait_list;
use super::{arrivals, clock, config, packing, wakeups};

pub use aftermath::Aftermath;
use aftermath::Rest;
pub use apply::renewing;
pub use begin::{
    begin, begin_without_events, can_begin, has_fire_without_memory, has_small_lead, Begun,
};
pub use refused::Refused;
pub use replication::Replication;
use replication::{replicate, replicate_cut};
pub use run::{clock_of, run, run_chosen, run_if, run_in_form, Form, Missing};

/// The maximum number of removed messages that a command frees.
const FREED_BY_A_COMMAND: usize = 64;

/// A key that is open for a change.
pub struct Slot<'c> {
    opened: KeyWrite<'c>,
    key: Name<'c>,
    happened: Happened,
    rest: Option<Box<Rest>>,
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
    let (result, mut aftermath) = change_silently(ctx, key, apply)?;
    aftermath.tell(ctx);
    aftermath.publish(ctx);
    Ok(result)
}

/// Like [`change`], for a change by `op` at a moment of the server that begins with the events which
/// are due. What these owe to other keys is settled first, so `apply` sees a queue that owes nothing.
/// It gets the beginning of the change, or `None` if the key holds no queue. `op` is `None` where it
/// is not known yet.
///
/// Errors: the key holds another type, or the change would write to a key that is not here. Then
/// `apply` does not run.
#[inline]
pub fn change_up_to_date<R>(
    ctx: &mut Context,
    key: Name<'_>,
    op: Option<&Op<'_>>,
    server: impl Fn(&mut Slot<'_>) -> Moment,
    apply: impl FnOnce(&mut Slot<'_>, Option<Begun>) -> R,
) -> Result<R, Refused> {
    let may = moving_slots::check(ctx, key, op)?;
    let mut settling: Option<Box<Settling<'_>>> = None;
    loop {
        let mut slot = Slot::open(ctx, key)?;
        let spent = settling.as_ref().map_or(0, |settling| settling.steps);
        let begun = slot.begin(may, &server, spent);
        if slot.owes() {
            let settling = settling.get_or_insert_default();
            if settling.settle(&mut slot, begun) {
                let aftermath = slot.close(key);
                settling.add(ctx, aftermath);
                continue;
            }
        }
        let result = apply(&mut slot, begun);
        let mut aftermath = slot.close(key);
        aftermath.tell(ctx);
        if let Some(settling) = settling {
            settling.publish(ctx);
        }
        aftermath.publish(ctx);
        return Ok(result);
    }
}

/// The settling of a queue that owes something when a change begins. Most queues owe nothing.
#[derive(Default)]
struct Settling<'c> {
    /// The steps that due events have taken.
    steps: u64,
    /// How many these were when the queue owed something. If it does again without any more, it
    /// cannot be settled, and refuses the operation.
    owes: Option<u64>,
    /// Whether the collecting of log entries began for it.
    collects: bool,
    /// The changes in which it was settled.
    settled: Vec<Aftermath<'c>>,
}

impl<'c> Settling<'c> {
    /// Commits the beginning of a change of a queue that owes something. Returns whether the change
    /// must begin anew.
    #[cold]
    fn settle(&mut self, slot: &mut Slot<'_>, begun: Option<Begun>) -> bool {
        let (ctx, Some(queue)) = slot.split() else {
            return false;
        };
        if self.owes == Some(self.steps) {
            queue.note_stuck("what follows from the end of a message");
            return false;
        }
        self.owes = Some(self.steps);
        self.collects |= ctx.begin_to_collect();
        self.steps += begun.map_or(0, |begun| begun.before.steps);
        // A Tick is never refused. It takes what is owed, also where no event was due: a queue can
        // come with it.
        if let Some(begun) = begun {
            let _ = slot.apply(begun, &Op::Tick, |_, _, _| ());
        }
        true
    }

    #[cold]
    fn add(&mut self, ctx: &mut Context, mut aftermath: Aftermath<'c>) {
        aftermath.tell(ctx);
        self.settled.push(aftermath);
    }

    /// Ends the collecting, and publishes what was settled.
    #[cold]
    fn publish(self, ctx: &mut Context) {
        if self.collects {
            ctx.replicate_collected();
        }
        self.settled.into_iter().for_each(|one| one.publish(ctx));
    }
}

/// Commits the beginning of a change in which nothing else is done.
#[cold]
pub fn settle_begun(slot: &mut Slot<'_>, begun: Option<Begun>) {
    if let Some(begun) = begun.filter(|begun| !begun.before.is_nothing()) {
        // A Tick is never refused.
        let _ = slot.apply(begun, &Op::Tick, |_, _, _| ());
    }
}

/// Like [`change`], but publishes nothing yet, and changes no other keys: a change of several
/// queues does that when all of them have changed.
#[inline]
pub fn change_silently<'c, R>(
    ctx: &mut Context,
    key: Name<'c>,
    apply: impl FnOnce(&mut Slot<'_>) -> R,
) -> Result<(R, Aftermath<'c>), WrongType> {
    let mut slot = Slot::open(ctx, key)?;
    let result = apply(&mut slot);
    Ok((result, slot.close(key)))
}

impl<'c> Slot<'c> {
    /// Opens a key for a change. Error: it holds another type.
    #[inline(always)]
    fn open(ctx: &'c mut Context, key: Name<'c>) -> Result<Slot<'c>, WrongType> {
        let mut slot = Slot {
            opened: ctx.open_write(key)?,
            key,
            happened: Happened::default(),
            rest: None,
        };
        if let (ctx, Some(queue)) = slot.opened.split() {
            if queue.notes.cut.is_some() {
                replicate_cut(ctx, key, queue);
            }
        }
        Ok(slot)
    }

    /// Closes the key, which is `key`.
    #[inline(always)]
    fn close<'k>(self, key: Name<'k>) -> Aftermath<'k> {
        Aftermath::of(key, self.happened, self.rest)
    }

    /// Begins a change of the queue; `None` if the key holds none.
    #[inline(always)]
    fn begin(
        &mut self,
        may: May,
        server: impl Fn(&mut Slot<'_>) -> Moment,
        spent: u64,
    ) -> Option<Begun> {
        let moment = server(self);
        let queue = self.opened.split().1?;
        Some(match may {
            May::All => begin(queue, moment, spent),
            May::OnlyOperate => begin_without_events(queue, moment),
        })
    }

    /// Whether the queue owes something to other keys.
    #[inline(always)]
    fn owes(&mut self) -> bool {
        self.opened.split().1.is_some_and(|queue| queue.owes())
    }
}

impl Slot<'_> {
    /// The server, and the queue if the key holds one.
    #[inline]
    pub fn split(&mut self) -> (&Context, Option<&mut Value>) {
        self.opened.split()
    }

    /// The moment at which the queue in this key may act, whose receipts no queue in it has given
    /// out before.
    #[inline]
    pub fn moment(&mut self, server: Moment) -> Moment {
        clock::of_key(server, self.opened.split().0, self.key)
    }

    /// Puts a queue into the key. It replaces the queue that the key may hold.
    pub fn create(&mut self, queue: Queue) -> &mut Value {
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
            told,
        } = queue.take_effects();
        let is_replay = matches!(replication, Replication::Replayed | Replication::Restored);
        // A replay owes nothing: what became of dead messages follows in log entries of its own.
        let owed = match queue.owes() && !is_replay {
            true => queue.take_owed(key.bytes()),
            false => None,
        };
        if let Some(what) = told.as_ref().and_then(|told| told.stuck) {
            let key = quote(key.bytes());
            faults::internal_error(&format!("{what} made no progress in the queue {key}"));
        }
        if told.is_some() || owed.is_some() {
            let rest = self.rest.get_or_insert_default();
            rest.add(queue, told.map(|told| *told), owed);
            // Log entries are collected from this one on.
            if rest.concerns_other_keys() && !is_replay {
                rest.began_to_collect |= ctx.begin_to_collect();
            }
        }
        if let Replication::Entry(entry) = &replication {
            if entry.before.cut > 0 {
                arrivals::lead_was_cut(key, entry.before.cut);
            }
        }
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
            // Receipts and ids that other servers have given out concern only the queue itself,
            // which knows them.
            Replication::Replayed | Replication::Restored => {}
            _ => clock::gave_receipt(ctx, key, queue.last_receipt(), moment.receipt),
        }
        if visible || matches!(replication, Replication::Restored) {
            ctx.signal_modified(key);
        }
        if queue.has_garbage() {
            queue.free_garbage(FREED_BY_A_COMMAND);
        }
        packing::note(ctx, key, queue);
        schedule(ctx, key, queue, moment, is_replay);
        self.happened.add(happened);
    }
}

/// Schedules the timer for the queue's next event, and the queue's wait list if messages are ready.
fn schedule(ctx: &Context, key: Name<'_>, queue: &mut Value, moment: Moment, is_replay: bool) {
    let is_awaited = wait_list::total() > 0 && wait_list::is_awaited(ctx.db(), key.bytes());
    let now = queue.now(moment);
    let is_of_family = families::is_active() && families::note(ctx, key, queue, now);
    // A queue of a family enters the order of turns again when its RATE allows a delivery.
    let wake = match queue.next_wake(now, is_awaited || is_of_family) {
        Some(wake) => queue.server_time(wake.max(now)),
        None => NEVER,
    };
    // A full MAXRUNNING does not prevent this, because it does not limit clients with NOACK.
    if is_awaited && queue.has_ready(now) {
        wait_list::schedule(ctx.db(), key.bytes());
    }
    if is_replay && !has_small_lead(queue, clock::recent()) {
        // Its clock must be set by the server's as soon as this server may do that.
        queue.notes.wake = None;
        return wakeups::schedule(ctx, ctx.db(), key.bytes(), Due::Arrived);
    }
    if queue.notes.wake.is_none_or(|noted| wake < noted) {
        queue.notes.wake = Some(wake);
        wakeups::schedule(ctx, ctx.db(), key.bytes(), wake);
    }
}

/// The creation of a queue with the module's defaults and these changes to them.
pub fn creation(changes: &Changes, clock: Clock) -> Creation {
    let defaults = Settings {
        lease: config::LEASE.unsigned(),
        retries: config::RETRIES.get(),
        retain: config::RETAIN.unsigned(),
        retain_count: config::RETAIN_COUNT.unsigned(),
        compress: config::compress(),
        ..Settings::default()
    };
    Creation {
        settings: defaults.created(changes, config::default_backoff()),
        clock,
        salt: clock::random(),
    }
}
