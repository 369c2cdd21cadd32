//! The one way in which anything changes a queue: open the key, let time do
//! what is due, do the operation, reply, tell replicas and the log in one
//! record or by the command itself, tell those who wait or listen.
//!
//! Commands come through [`run`], the timer and served waiters through
//! [`settle`], replicated records through `apply.rs`.

use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::command::error;
use crate::config;
use crate::ffi::{CommandResult, Context, Name, Reply};
use crate::runtime::{endings, moment, waiters, wake};
use dq_queue::codec::command;
use dq_queue::codec::record::{Creation, Record};
use dq_queue::op::{DueTime, Effects, Ending, Happened, Sent};
use dq_queue::settings::{Changes, Clock, Settings};
use dq_queue::{Done, Moment, Op, Queue, NEVER};

/// The steps of time that a command takes at most before it does what it was
/// asked for. The timer does the rest.
const STEPS_OF_A_COMMAND: u64 = 512;
/// The same for the commands that follow within [`SHARED_US`]: in a large burst
/// many commands at once must not hold the server one after the other.
const STEPS_OF_THE_NEXT: u64 = 16;
/// So long commands share one large slice, in microseconds.
const SHARED_US: u64 = 1000;
/// The purged messages that a command frees at most.
const SWEPT_BY_A_COMMAND: usize = 64;

/// What an operation does where there is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Makes a queue with the module's defaults.
    Create,
    /// Nothing; it replies as of an empty queue.
    Nothing,
    /// Answers an error.
    Refuse,
}

/// A random number for what an operation has to spread.
pub fn random() -> u64 {
    moment::random()
}

/// Runs an operation on the queue of a key. `reply` gets the queue after it
/// and what came of it, or `None` where there is no queue.
#[inline]
pub fn run(
    ctx: &mut Context,
    key: Name<'_>,
    op: &Op<'_>,
    missing: Missing,
    reply: impl FnOnce(Reply<'_>, Option<(&Queue, &Done)>),
) -> CommandResult {
    run_in_form(ctx, key, op, missing, Form::Record, reply)
}

/// In which form an operation may travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a record, with its moment.
    Record,
    /// As its command, where that says all (see [`command`]).
    Command,
}

/// The same in a form that may be another.
pub fn run_in_form(
    ctx: &mut Context,
    key: Name<'_>,
    op: &Op<'_>,
    missing: Missing,
    form: Form,
    reply: impl FnOnce(Reply<'_>, Option<(&Queue, &Done)>),
) -> CommandResult {
    let moment = moment_of(op);
    let mut opened = ctx.open_write(key)?;
    let (here, queue) = opened.split();
    let told = match queue {
        Some(queue) => {
            let steps = let_time_act(queue, moment);
            let renewing = queue.renewing(op, wake::term(), moment::random);
            let op = renewing.as_ref().unwrap_or(op);
            let of_command = match form {
                Form::Command if steps == 0 && here.hands_commands_on() => {
                    command::moment(queue, op, moment, moment::last_receipt())
                }
                _ => None,
            };
            let result = queue.apply(op, of_command.unwrap_or(moment));
            if let Ok(done) = &result {
                if renewing.is_some() {
                    queue.noted_term = wake::term();
                }
                reply(here.reply(), Some((queue, done)));
            }
            let told = match (of_command, result.as_ref().ok()) {
                (Some(_), Some(_)) => settle_command(here, key, queue, moment),
                (_, done) => {
                    let record = Record::of(moment, steps, None, recorded(op, done));
                    settle(here, key, queue, moment, &record)
                }
            };
            match result {
                Ok(done) => queue.take_back(done),
                Err(error) => {
                    drop(opened);
                    told.tell(ctx, key);
                    return Err(error::refusal(&error));
                }
            }
            told
        }
        None => match missing {
            Missing::Nothing => {
                reply(here.reply(), None);
                return Ok(());
            }
            Missing::Refuse => return Err(error::NO_SUCH_QUEUE.into()),
            Missing::Create => {
                let creation = creation(&Changes::default(), Clock::Server);
                let mut queue = creation.queue();
                let done = match queue.apply(op, moment) {
                    Ok(done) => done,
                    Err(error) => return Err(error::refusal(&error)),
                };
                reply(here.reply(), Some((&queue, &done)));
                let record = Record::of(moment, 0, Some(creation), recorded(op, Some(&done)));
                queue.made_at(moment);
                queue.noted_term = wake::term();
                let queue = opened.create(queue);
                settle(here, key, queue, moment, &record)
            }
        },
    };
    drop(opened);
    told.tell(ctx, key);
    Ok(())
}

/// The moment of an operation that is done now: maybe some microseconds ago for what is
/// done all the time and delays nothing. What is delayed counts from now, so that it is
/// never early.
fn moment_of(op: &Op<'_>) -> Moment {
    let is_prompt = match op {
        Op::Send(send) => send.due == DueTime::Now,
        Op::Fetch(_) | Op::Ack { .. } => true,
        _ => false,
    };
    match is_prompt {
        true => moment::recent(),
        false => moment::now(),
    }
}

/// How a queue is made: the module's defaults with these changes.
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
        salt: moment::random(),
    }
}

/// Lets time do what is due, as far as a command takes part in that; how many
/// steps it took. Fires that were missed are left to the timer, which decides
/// about them in a record of their own.
#[inline]
pub fn let_time_act(queue: &mut Queue, moment: Moment) -> u64 {
    let now = queue.now(moment);
    if !queue.has_work(now) || queue.has_missed(wake::firing_since(queue, now)) {
        return 0;
    }
    static LAST_LARGE_US: AtomicU64 = AtomicU64::new(0);
    if moment.us < LAST_LARGE_US.load(Relaxed) + SHARED_US {
        return queue.advance(now, STEPS_OF_THE_NEXT).steps;
    }
    let steps = queue.advance(now, STEPS_OF_A_COMMAND).steps;
    if steps > STEPS_OF_THE_NEXT {
        LAST_LARGE_US.store(moment.us, Relaxed);
    }
    steps
}

/// What of an operation must be told to a replica, if it changed anything.
fn recorded<'o, 'a>(op: &'o Op<'a>, done: Option<&Done>) -> &'o Op<'a> {
    match done {
        None => &Op::Tick,
        Some(Done::Sent(sent)) if sent.first() == Some(&Sent::Taken) => &Op::Duplicate,
        Some(_) => op,
    }
}

/// What is still to be told when the key is closed.
#[derive(Debug, Default)]
pub struct Told {
    happened: Happened,
    endings: Vec<Ending>,
}

impl Told {
    /// Publishes events, and lets those go who wait for a message's end.
    pub fn tell(self, ctx: &mut Context, key: Name<'_>) {
        if !self.happened.is_empty() && ctx.wants_events() {
            for (kind, name) in EVENTS {
                if self.happened.has(kind) {
                    ctx.notify_event(name, key);
                }
            }
        }
        for ending in self.endings {
            endings::tell(ctx.db(), key.bytes(), ending);
        }
    }
}

/// The events, causes before what follows from them.
const EVENTS: [(Happened, &CStr); 8] = [
    (Happened::SENT, c"dq.sent"),
    (Happened::ACKED, c"dq.acked"),
    (Happened::NACKED, c"dq.nacked"),
    (Happened::TIMEOUT, c"dq.timeout"),
    (Happened::DEAD, c"dq.dead"),
    (Happened::CANCELLED, c"dq.cancelled"),
    (Happened::READY, c"dq.ready"),
    (Happened::DELIVERED, c"dq.delivered"),
];

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A buffer that has grown beyond this is given back.
const KEPT_BUFFER: usize = 64 * 1024;

/// Replicates what has changed, as one record, notes that there is something for
/// those who wait, and sees to it that the queue is looked at in time. Call it once
/// after whatever changed a queue.
pub fn settle(
    ctx: &Context,
    key: Name<'_>,
    queue: &mut Queue,
    moment: Moment,
    record: &Record<'_, '_>,
) -> Told {
    let effects = queue.take_effects();
    if effects.changed {
        match ctx.hands_records_on() {
            true => hand_on(ctx, key, record),
            false => ctx.replicate_command(),
        }
        moment::saw_receipt(queue.last_receipt(), moment.us);
    }
    conclude(ctx, key, queue, moment, effects)
}

/// The same where the running command travels as it came.
fn settle_command(ctx: &Context, key: Name<'_>, queue: &mut Queue, moment: Moment) -> Told {
    let effects = queue.take_effects();
    if effects.changed {
        ctx.replicate_command();
        moment::saw_receipt(queue.last_receipt(), moment.us);
    }
    conclude(ctx, key, queue, moment, effects)
}

fn hand_on(ctx: &Context, key: Name<'_>, record: &Record<'_, '_>) {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        record.encode_into(buffer);
        ctx.replicate(key, buffer);
        if buffer.capacity() > KEPT_BUFFER {
            *buffer = Vec::new();
        }
    });
}

/// The part of [`settle`] that does not replicate.
pub fn conclude(
    ctx: &Context,
    key: Name<'_>,
    queue: &mut Queue,
    moment: Moment,
    effects: Effects,
) -> Told {
    if effects.visible {
        ctx.signal_modified(key);
    }
    if queue.has_discarded() {
        queue.sweep(SWEPT_BY_A_COMMAND);
    }
    let is_awaited = waiters::all() > 0 && waiters::count(ctx.db(), key.bytes()) > 0;
    let now = queue.now(moment);
    let wake = match queue.next_wake(now, is_awaited) {
        Some(wake) => wake.max(now),
        None => NEVER,
    };
    // MAXRUNNING does not hold for all who may wait.
    if is_awaited && queue.has_ready(now) {
        waiters::note(ctx.db(), key.bytes());
    }
    if queue.noted_wake.is_none_or(|noted| wake < noted) {
        queue.noted_wake = Some(wake);
        wake::note(ctx, ctx.db(), key.bytes(), wake);
    }
    Told {
        happened: effects.happened,
        endings: effects.endings,
    }
}
