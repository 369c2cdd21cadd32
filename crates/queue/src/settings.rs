//! The settings of a queue, which hold for all its messages, and their
//! defaults.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::dead_letters::DeadTo;
use crate::transition::DEFAULT_EVENTS_LEN;
use crate::Millis;

/// The growth of the wait after a failed delivery with the number of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// Always this many ms.
    Fixed(Millis),
    /// This many ms times the number of failures.
    Linear(Millis),
    /// This many ms, doubled with each failure after the first.
    Exp(Millis),
}

/// The backoff of queues that say nothing of it when they are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultBackoff {
    /// See [`Settings::backoff`].
    pub backoff: Backoff,
    /// See [`Settings::max_backoff`].
    pub max_backoff: Millis,
    /// See [`Settings::jitter`].
    pub jitter: u8,
}

impl DefaultBackoff {
    /// No wait after a failure.
    pub const NONE: DefaultBackoff = DefaultBackoff {
        backoff: Backoff::Fixed(0),
        max_backoff: 0,
        jitter: 0,
    };
}

/// A rate limit: at most `count` deliveries in any window of `per` ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Deliveries per window, at least 1.
    pub count: u64,
    /// Length of the window, at least 1 ms.
    pub per: Millis,
}

/// A breaker: `failures` failed deliveries within any window of `per` ms stop the
/// deliveries of a group for `open` ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// The number of failures that open the breaker, 1 to 1,000.
    pub failures: u64,
    /// Length of the window, at least 1 ms.
    pub per: Millis,
    /// How long the breaker is open the first time, at least 1 ms.
    pub open: Millis,
    /// The longest time that the breaker is open, in ms; at least `open`. It is open for
    /// twice as long as the last time when the one message let out after that fails.
    pub max: Millis,
}

/// Whether a group waits while one of its messages waits for its next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRetry {
    /// The group waits: the failed message stays its head.
    Block,
    /// The group continues without the failed message.
    Skip,
    /// As Block. Messages that one FETCH takes of the group are leased each for itself, and a
    /// failed one goes out again while those behind it are still leased.
    Alone,
}

impl OnRetry {
    /// All of them. The positions are part of the snapshot format.
    pub const ALL: [OnRetry; 3] = [OnRetry::Block, OnRetry::Skip, OnRetry::Alone];

    /// The name in arguments and replies.
    pub fn name(self) -> &'static str {
        match self {
            OnRetry::Block => "BLOCK",
            OnRetry::Skip => "SKIP",
            OnRetry::Alone => "ALONE",
        }
    }
}

/// Whether a group continues after one of its messages has died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDead {
    /// The group continues.
    Continue,
    /// The group is held until it is resumed, or until the dead message is
    /// redriven, cancelled or purged.
    Block,
}

/// The measure by which groups take turns. The numbers are part of the log and the snapshot format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Fair {
    /// The number of their messages.
    #[default]
    Count = 0,
    /// The time for which workers held their messages.
    Time = 1,
    /// The costs of their messages.
    Cost = 2,
}

impl Fair {
    /// All values, in the order of their numbers.
    pub const ALL: [Fair; 3] = [Fair::Count, Fair::Time, Fair::Cost];

    /// The word for the value in arguments and replies.
    pub fn name(self) -> &'static str {
        match self {
            Fair::Count => "COUNT",
            Fair::Time => "TIME",
            Fair::Cost => "COST",
        }
    }
}

/// The clock that a queue follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The server's clock.
    Server,
    /// The queue has its own clock, which clients move. This is its time, in Unix ms.
    Manual(Millis),
}

/// The options of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The lease: how long a consumer has for a message, in ms; at least 1.
    pub lease: Millis,
    /// How many failures of a message are forgiven; -1 forgives all.
    pub retries: i64,
    /// The wait after a nack.
    pub backoff: Backoff,
    /// The longest wait after a failure, in ms; 0 for no limit.
    pub max_backoff: Millis,
    /// The random spread of the wait after a failure, in percent, 0 to 100.
    pub jitter: u8,
    /// How long a message lives after its due time, in ms; 0 for ever.
    pub ttl: Millis,
    /// How long records of finished and cancelled messages are kept, in ms; 0
    /// keeps none.
    pub retain: Millis,
    /// The most records of finished and cancelled messages; 0 for no limit.
    pub retain_count: u64,
    /// How long dead messages are kept, in ms; 0 for ever.
    pub dead_retain: Millis,
    /// The most dead messages that are kept; 0 for no limit.
    pub dead_count: u64,
    /// How long an id stays taken after its message was finished or cancelled,
    /// in ms; 0 frees it at once.
    pub dedup: Millis,
    /// The most messages that are pending or running; 0 for no limit.
    pub max_len: u64,
    /// The most payload bytes of pending and running messages; 0 for no limit.
    pub max_bytes: u64,
    /// Maximum number of messages leased at once; 0 for no limit.
    pub max_running: u64,
    /// The rate limit of deliveries, if any.
    pub rate: Option<Rate>,
    /// Maximum number of batches of one group leased at once; at least 1.
    pub group_concurrency: u64,
    /// Whether a group waits behind a failed message.
    pub on_retry: OnRetry,
    /// Whether a group waits behind a dead message.
    pub on_dead: OnDead,
    /// The breaker of each group and of the ungrouped messages, if any.
    pub breaker: Option<Breaker>,
    /// The measure by which groups take turns.
    pub fair: Fair,
    /// Whether operations that would add a message are refused, so that the queue can be emptied.
    pub closed: bool,
    /// How many leases of a message may run out or be lost before it dies; 0 for no limit.
    pub max_timeouts: u64,
    /// How many of the last failed attempts of a message are kept, 0 to 100.
    pub errors: u8,
    /// The queue to which messages go that die, if not into the records of this queue.
    pub dead_to: Option<Box<DeadTo>>,
    /// The key of the event stream, if there is one; never empty.
    pub events: Option<Box<[u8]>>,
    /// The most entries of the event stream; at least 1.
    pub events_len: u64,
    /// Whether payloads of messages that rest are kept packed.
    pub compress: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            lease: 30_000,
            retries: 3,
            backoff: Backoff::Fixed(0),
            max_backoff: 0,
            jitter: 0,
            ttl: 0,
            retain: 0,
            retain_count: 10_000,
            dead_retain: 0,
            dead_count: 0,
            dedup: 0,
            max_len: 0,
            max_bytes: 0,
            max_running: 0,
            rate: None,
            group_concurrency: 1,
            on_retry: OnRetry::Block,
            on_dead: OnDead::Continue,
            breaker: None,
            fair: Fair::Count,
            compress: false,
            closed: false,
            max_timeouts: 0,
            errors: 0,
            dead_to: None,
            events: None,
            events_len: DEFAULT_EVENTS_LEN,
        }
    }
}

/// Options to change; `None` leaves an option as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// See [`Settings::lease`].
    pub lease: Option<Millis>,
    /// See [`Settings::retries`].
    pub retries: Option<i64>,
    /// See [`Settings::backoff`].
    pub backoff: Option<Backoff>,
    /// See [`Settings::max_backoff`].
    pub max_backoff: Option<Millis>,
    /// See [`Settings::jitter`].
    pub jitter: Option<u8>,
    /// See [`Settings::ttl`].
    pub ttl: Option<Millis>,
    /// See [`Settings::retain`].
    pub retain: Option<Millis>,
    /// See [`Settings::retain_count`].
    pub retain_count: Option<u64>,
    /// See [`Settings::dead_retain`].
    pub dead_retain: Option<Millis>,
    /// See [`Settings::dead_count`].
    pub dead_count: Option<u64>,
    /// See [`Settings::dedup`].
    pub dedup: Option<Millis>,
    /// See [`Settings::max_len`].
    pub max_len: Option<u64>,
    /// See [`Settings::max_bytes`].
    pub max_bytes: Option<u64>,
    /// See [`Settings::max_running`].
    pub max_running: Option<u64>,
    /// See [`Settings::rate`]; `Some(None)` removes the limit.
    pub rate: Option<Option<Rate>>,
    /// See [`Settings::group_concurrency`].
    pub group_concurrency: Option<u64>,
    /// See [`Settings::on_retry`].
    pub on_retry: Option<OnRetry>,
    /// See [`Settings::on_dead`].
    pub on_dead: Option<OnDead>,
    /// See [`Settings::breaker`]; `Some(None)` removes it.
    pub breaker: Option<Option<Breaker>>,
    /// See [`Settings::compress`].
    pub compress: Option<bool>,
    /// See [`Settings::fair`].
    pub fair: Option<Fair>,
    /// See [`Settings::closed`].
    pub closed: Option<bool>,
    /// See [`Settings::max_timeouts`].
    pub max_timeouts: Option<u64>,
    /// See [`Settings::errors`].
    pub errors: Option<u8>,
    /// See [`Settings::dead_to`]; `Some(None)` removes it.
    pub dead_to: Option<Option<Box<DeadTo>>>,
    /// See [`Settings::events`]; `Some(None)` removes it.
    pub events: Option<Option<Box<[u8]>>>,
    /// See [`Settings::events_len`].
    pub events_len: Option<u64>,
}

/// How many different settings are remembered, to be shared.
const MOST_KNOWN: usize = 8;

impl Settings {
    /// These settings, for a queue. Queues with the same settings share one allocation, if these are
    /// among the last few that were asked for.
    pub fn shared(self) -> Arc<Settings> {
        static KNOWN: Mutex<VecDeque<Weak<Settings>>> = Mutex::new(VecDeque::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut alive = known.iter().filter_map(Weak::upgrade);
        if let Some(shared) = alive.find(|one| **one == self) {
            return shared;
        }
        let own = Arc::new(self);
        known.push_front(Arc::downgrade(&own));
        known.truncate(MOST_KNOWN);
        own
    }

    /// The settings of a queue that is created with `changes`. These come before `backoff`, all
    /// of which is left out if they have a BACKOFF.
    pub fn created(&self, changes: &Changes, backoff: DefaultBackoff) -> Settings {
        let backoff = match changes.backoff {
            Some(_) => DefaultBackoff::NONE,
            None => backoff,
        };
        let defaults = Settings {
            backoff: backoff.backoff,
            max_backoff: backoff.max_backoff,
            jitter: backoff.jitter,
            ..self.clone()
        };
        defaults.with(changes)
    }

    /// These settings after `changes`.
    pub fn with(&self, changes: &Changes) -> Settings {
        Settings {
            lease: changes.lease.unwrap_or(self.lease),
            retries: changes.retries.unwrap_or(self.retries),
            backoff: changes.backoff.unwrap_or(self.backoff),
            max_backoff: changes.max_backoff.unwrap_or(self.max_backoff),
            jitter: changes.jitter.unwrap_or(self.jitter),
            ttl: changes.ttl.unwrap_or(self.ttl),
            retain: changes.retain.unwrap_or(self.retain),
            retain_count: changes.retain_count.unwrap_or(self.retain_count),
            dead_retain: changes.dead_retain.unwrap_or(self.dead_retain),
            dead_count: changes.dead_count.unwrap_or(self.dead_count),
            dedup: changes.dedup.unwrap_or(self.dedup),
            max_len: changes.max_len.unwrap_or(self.max_len),
            max_bytes: changes.max_bytes.unwrap_or(self.max_bytes),
            max_running: changes.max_running.unwrap_or(self.max_running),
            rate: changes.rate.unwrap_or(self.rate),
            group_concurrency: changes.group_concurrency.unwrap_or(self.group_concurrency),
            on_retry: changes.on_retry.unwrap_or(self.on_retry),
            on_dead: changes.on_dead.unwrap_or(self.on_dead),
            breaker: changes.breaker.unwrap_or(self.breaker),
            fair: changes.fair.unwrap_or(self.fair),
            compress: changes.compress.unwrap_or(self.compress),
            closed: changes.closed.unwrap_or(self.closed),
            max_timeouts: changes.max_timeouts.unwrap_or(self.max_timeouts),
            errors: changes.errors.unwrap_or(self.errors),
            dead_to: match &changes.dead_to {
                Some(dead_to) => dead_to.clone(),
                None => self.dead_to.clone(),
            },
            events: match &changes.events {
                Some(events) => events.clone(),
                None => self.events.clone(),
            },
            events_len: changes.events_len.unwrap_or(self.events_len),
        }
    }
}
