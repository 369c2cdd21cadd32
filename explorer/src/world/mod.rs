//! A small world: a few queues, one server clock, and the clients that matter.
//!
//! It does what the module's layer does around the core, and nothing else: due events come before
//! an operation, each change becomes a log entry that a replica repeats, and what other keys are
//! owed is delivered behind the command. Nothing in it is random, so a path of actions always leads
//! to the same world.

mod acksend;
mod begin;
mod bulk;
mod clients;
mod command;
mod commit;
mod deliver;
mod effects;
mod events;
mod known;
mod server;
mod time;
mod words;

use std::collections::BTreeMap;

use dq_queue::effect::plain::PlainKeys;
use dq_queue::queue::bulk::Plan;
use dq_queue::queue::model::Model;
use dq_queue::{Millis, Moment, Queue, Receipt};

pub use clients::Waiting;
pub use deliver::Outbox;

/// The key of a queue.
pub type Key = Box<[u8]>;

/// The server's clock at the beginning, in Unix ms: late enough that no time is taken for seconds.
pub const START: Millis = 2_000_000_000_000;
/// The salt of the ids that queues generate.
const SALT: u64 = 7;

/// A whole snapshot of a queue.
pub fn saved(queue: &Queue) -> Vec<u8> {
    let mut bytes = Vec::new();
    queue.save(&mut |block| bytes.extend_from_slice(block));
    bytes
}

/// Loads a queue from its snapshot.
///
/// # Errors
/// A sentence that says why the bytes are no snapshot.
pub fn loaded(bytes: &[u8]) -> Result<Queue, String> {
    let mut blocks = bytes.chunks(4096);
    Queue::load(Queue::VERSION, &mut || blocks.next().map(<[u8]>::to_vec))
}

/// A queue in its key.
#[derive(Debug, Clone)]
pub struct Place {
    /// The queue of the primary.
    pub queue: Queue,
    /// The same queue on a replica, which has loaded a snapshot and repeats log entries since. A log
    /// that is replayed does the same. `None` where no step is checked.
    pub replica: Option<Queue>,
    /// Its slow model, as long as that knows all that is done.
    pub model: Option<Model>,
    /// Bulk operations whose slices the timer runs.
    pub plans: Vec<Plan>,
    /// Leases that end when their connection closes, with the grace that they have then, in ms.
    pub bound: Vec<(Receipt, Millis)>,
}

/// The outcome of one action besides the new world.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// The reply of the command, as text.
    pub reply: String,
    /// Rules that were broken in the middle of the action.
    pub faults: Vec<String>,
}

/// All queues, and what the server knows besides them.
#[derive(Debug, Clone)]
pub struct World {
    /// The queues by key.
    pub places: BTreeMap<Key, Place>,
    /// The keys that hold no queue, which acknowledgements change.
    pub plain: PlainKeys,
    /// The same keys on the replica, which removes what has expired only where the log says so.
    plain_of_replica: Option<PlainKeys>,
    /// The clock of the server, in Unix ms.
    pub ms: Millis,
    /// The next receipt that the server gives out.
    receipt: Receipt,
    /// Clients that wait in FETCH, in the order in which they came.
    pub waiting: Vec<Waiting>,
    /// Clients that wait for the end of a message: its key and id.
    pub watching: Vec<(Key, Box<[u8]>)>,
    /// Whether the server has just stood still, so that leases that have ended are spared.
    pub spares: bool,
    /// How many due events a command processes at most before its operation.
    pub most_events: u64,
    /// Whether new queues get a replica.
    replicates: bool,
    /// The states of messages as the events of each queue with EVENTS tell them.
    pub told: BTreeMap<Key, BTreeMap<Box<[u8]>, &'static str>>,
}

impl World {
    /// A world without queues. Commands process `most_events` due events at most before their own
    /// operation.
    pub fn new(most_events: u64) -> World {
        World {
            places: BTreeMap::new(),
            plain: PlainKeys::default(),
            plain_of_replica: None,
            ms: START,
            receipt: 1,
            waiting: Vec::new(),
            watching: Vec::new(),
            spares: false,
            most_events,
            replicates: false,
            told: BTreeMap::new(),
        }
    }

    /// Returns the same world, in which each queue has a replica that was loaded from a snapshot
    /// just now.
    ///
    /// # Errors
    /// A snapshot cannot be loaded.
    pub fn replicated(&self) -> Result<World, String> {
        let mut world = self.clone();
        world.replicates = true;
        world.plain_of_replica = Some(self.plain.clone());
        for place in world.places.values_mut() {
            place.replica = Some(loaded(&saved(&place.queue))?);
        }
        Ok(world)
    }

    /// The moment of the server.
    pub fn moment(&self) -> Moment {
        Moment {
            us: self.ms * 1000,
            receipt: self.receipt,
        }
    }

    /// The queue in a key.
    pub fn queue(&self, key: &[u8]) -> Option<&Queue> {
        self.places.get(key).map(|place| &place.queue)
    }

    /// The time of the queue in a key, in Unix ms: the server's where there is none.
    pub fn time_of(&self, key: &[u8]) -> Millis {
        let moment = self.moment();
        self.queue(key).map_or(self.ms, |queue| queue.time(moment))
    }

    /// The shape of the world. Worlds of the same shape do the same from now on.
    pub fn shape(&self, past: Millis) -> Vec<u64> {
        let mut shape = Vec::with_capacity(256);
        for (key, place) in &self.places {
            shape.extend(key.iter().map(|byte| u64::from(*byte)));
            let now = place.queue.time(self.moment());
            shape.extend(place.queue.shape(now, past));
            shape.push(place.queue.lead(self.moment()));
            let running = place.running();
            for (receipt, grace) in &place.bound {
                let at = running.iter().position(|other| other == receipt);
                shape.push(at.map_or(0, |at| at as u64 + 1));
                shape.push(*grace);
            }
            shape.push(place.plans.len() as u64);
            for plan in &place.plans {
                let text = format!("{plan:?}");
                shape.extend(text.bytes().map(u64::from));
            }
        }
        shape.extend(self.plain.shape(self.ms).bytes().map(u64::from));
        for client in &self.waiting {
            shape.extend(client.text.bytes().map(u64::from));
        }
        for (key, id) in &self.watching {
            shape.extend(key.iter().chain(&**id).map(|byte| u64::from(*byte)));
        }
        shape.push(u64::from(self.spares));
        shape
    }
}

impl Place {
    /// The receipts of the running messages, in ascending order.
    pub fn running(&self) -> Vec<Receipt> {
        let messages = self.queue.parts();
        let receipts = messages
            .messages()
            .map(|numbered| numbered.message.receipt());
        let mut receipts: Vec<_> = receipts.filter(|receipt| *receipt > 0).collect();
        receipts.sort_unstable();
        receipts
    }
}
