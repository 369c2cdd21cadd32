//! Packs payloads that rest, in the background: a slice in each turn of the event loop, at most a
//! quarter of `dq.tick-budget-us` long, and a millisecond between two of them. Dictionaries are
//! trained in a thread of their own, one after the other.
//!
//! Nothing of this is visible or replicated. So a replica does it as well.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::{channel, Receiver, TryRecvError};
use std::thread;

use dq_queue::message::packing::{train, Samples};
use dq_queue::message::store::{Step, REST};
use dq_queue::Millis;

use super::address::QueueAddress;
use super::{clock, config, metrics};
use crate::redis::clock as redis_clock;
use crate::redis::{background, event_loop, Context, Name, OwnedName, Value};

/// The part of `dq.tick-budget-us` that a slice may take.
const SHARE: u64 = 4;
/// How long until the next slice while there is work, in ms.
const SOON: u64 = 1;
/// How long until the next slice while the server writes a snapshot or may not act, in ms. What a
/// child of the server shares with it would be copied.
const LATER: u64 = 100;
/// How long until it is seen whether a dictionary has been trained, in ms.
const TRAINING: u64 = 20;
/// How long the timer is set at most, in ms.
const LONGEST: u64 = 1000;
/// After this time a queue is noted again, in ms: its key may have been renamed.
const FORGOTTEN: Millis = 60_000;
/// The most queues that wait for the training of a dictionary. Each has a megabyte of samples.
const MOST_WAITING: usize = 4;

#[derive(Default)]
struct Packing {
    /// The queues that have something to pack, and from when on (Unix ms).
    queues: BTreeSet<(Millis, QueueAddress)>,
    waiting: VecDeque<(QueueAddress, Box<Samples>)>,
    /// The queue whose dictionary is being trained.
    training: Option<(QueueAddress, Receiver<Option<Vec<u8>>>)>,
}

thread_local! {
    static PACKING: RefCell<Packing> = RefCell::default();
}

/// Notes a queue that has payloads to pack. Called after each change of one.
#[inline]
pub fn note(ctx: &Context, key: Name<'_>, queue: &mut Value) {
    if queue.has_unpacked() {
        note_unpacked(ctx, key, queue);
    }
}

fn note_unpacked(ctx: &Context, key: Name<'_>, queue: &mut Value) {
    let now = clock::recent().ms();
    if queue
        .notes
        .packed_at
        .is_some_and(|at| now < at.saturating_add(FORGOTTEN))
    {
        return;
    }
    add(ctx, (ctx.db(), key.bytes().into()), queue, now);
}

fn add(ctx: &Context, address: QueueAddress, queue: &mut Value, at: Millis) {
    queue.notes.packed_at = Some(at);
    PACKING.with_borrow_mut(|all| all.queues.insert((at, address)));
    background::arm(ctx, SOON);
}

/// Runs a slice if it is time. Called before the server sleeps.
pub fn before_sleep(ctx: &mut Context) {
    if !background::has_fired() {
        return;
    }
    if !ctx.may_tidy() || ctx.is_primary() && !ctx.may_act() {
        return background::arm(ctx, LATER);
    }
    let begun = redis_clock::monotonic_us();
    take_trained(ctx);
    let deadline = begun + config::TICK_BUDGET_US.unsigned() / SHARE;
    while redis_clock::monotonic_us() < deadline && pack_next(ctx, deadline) {}
    metrics::count_slice(redis_clock::monotonic_us().saturating_sub(begun));
    let now = redis_clock::now_ms();
    let next = PACKING.with_borrow(|all| {
        let next = all
            .queues
            .first()
            .map(|(at, _)| at.saturating_sub(now).max(SOON));
        let trained = all.training.as_ref().map(|_| TRAINING);
        next.into_iter().chain(trained).min()
    });
    if let Some(next) = next {
        background::arm(ctx, next.min(LONGEST));
        // The server may have decided already how long it sleeps.
        event_loop::turn_again();
    }
}

/// Packs payloads of the next queue, until `deadline` on the monotonic clock. Returns whether there
/// was one.
fn pack_next(ctx: &mut Context, deadline: u64) -> bool {
    let now = redis_clock::now_ms();
    let next = PACKING.with_borrow_mut(|all| match all.queues.first() {
        Some((at, _)) if *at <= now => all.queues.pop_first(),
        _ => None,
    });
    let Some((_, address)) = next else {
        return false;
    };
    with_queue(ctx, &address, |ctx, queue| {
        queue.notes.packed_at = None;
        let mut step = Step::More;
        while matches!(step, Step::More) && redis_clock::monotonic_us() < deadline {
            step = queue.pack(clock::now());
        }
        let again = match step {
            Step::More => Some(now),
            // The clock of the queue may be another one.
            Step::Wait(Some(_)) => Some(now + REST / 5),
            Step::Wait(None) => None,
            Step::Train(samples) => {
                begin_training(queue, &address, samples);
                Some(now + REST / 5)
            }
        };
        if let Some(at) = again {
            add(ctx, address.clone(), queue, at);
        }
    });
    true
}

fn with_queue(
    ctx: &mut Context,
    (db, key): &QueueAddress,
    change: impl FnOnce(&Context, &mut Value),
) {
    let name = OwnedName::new(key);
    if !ctx.select_db(*db) {
        return;
    }
    let opened = ctx.open_write(name.name());
    let Ok(mut opened) = opened else {
        return;
    };
    let (ctx, queue) = opened.split();
    if let Some(queue) = queue {
        change(ctx, queue);
    }
}

fn begin_training(queue: &mut Value, address: &QueueAddress, samples: Box<Samples>) {
    let is_taken = PACKING.with_borrow_mut(|all| {
        let has_room = all.waiting.len() < MOST_WAITING;
        if has_room {
            all.waiting.push_back((address.clone(), samples));
            all.train_next();
        }
        has_room
    });
    if !is_taken {
        // It tries again later.
        queue.trained(None);
    }
}

impl Packing {
    fn train_next(&mut self) {
        if self.training.is_some() {
            return;
        }
        if let Some((address, samples)) = self.waiting.pop_front() {
            let (sender, receiver) = channel();
            let train = move || drop(sender.send(train(&samples)));
            // Without a thread the receiver finds that the sender is gone.
            let _ = thread::Builder::new()
                .name("dq-train".to_owned())
                .spawn(train);
            self.training = Some((address, receiver));
        }
    }
}

/// Gives a queue the dictionary that was trained for it, if one was.
fn take_trained(ctx: &mut Context) {
    let trained = PACKING.with_borrow_mut(|all| {
        let (_, receiver) = all.training.as_ref()?;
        let text = match receiver.try_recv() {
            Ok(text) => text,
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => return None,
        };
        let (address, _) = all.training.take()?;
        all.train_next();
        Some((address, text))
    });
    if let Some((address, text)) = trained {
        with_queue(ctx, &address, |_, queue| queue.trained(text.as_deref()));
    }
}
