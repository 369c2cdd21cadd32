//! Any number in a snapshot or a log entry may be forged: it is refused, or the queue can go on
//! until the end of time in bounded steps, and can be saved and loaded again.

use std::fs;
use std::path::Path;

use crate::codec::log_entry::{Chunk, Creation, LogEntry};
use crate::codec::restore::Restoring;
use crate::codec::wire::{put_number, Reader};
use crate::limits::MAX_STEPS;
use crate::op::Fetch;
use crate::queue::MAX_LEAD;
use crate::settings::{Clock, Settings};
use crate::{Moment, Op, Queue, MAX_EXACT};

/// The numbers that are put in the place of each other one: the bound of most, and what is beyond
/// it. A difference is written as twice its amount.
const FORGED: [u64; 5] = [MAX_EXACT, MAX_EXACT + 1, 2 * MAX_EXACT, 1 << 63, u64::MAX];

/// A moment at which the queues of the seeds are used: in the year 2033.
const LATER: u64 = 2_000_000_000_000_000;
/// The end of time, as far as a log entry can tell it: the year 4253.
const END: u64 = (1 << 56) - 1;

/// Queues and log entries of all kinds, which the fuzz targets begin with.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// The bytes with a number in place of the one that begins at `at`, and in place of the next one,
/// too, if `both`. `None` if no number begins there.
fn forged(bytes: &[u8], at: usize, n: u64, both: bool) -> Option<Vec<u8>> {
    let mut reader = Reader::new(&bytes[at..]);
    let mut out = bytes[..at].to_vec();
    for _ in 0..1 + usize::from(both) {
        reader.number().ok()?;
        put_number(&mut out, n);
    }
    out.extend_from_slice(reader.rest());
    Some(out)
}

/// All forms of bytes that differ from them in one number, or in two in a row that are the greatest.
fn all_forged(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let places = (0..bytes.len()).flat_map(|at| FORGED.map(|n| (at, n)));
    places.flat_map(|(at, n)| {
        let both = (n == u64::MAX).then(|| forged(bytes, at, n, true));
        [forged(bytes, at, n, false), both.flatten()]
            .into_iter()
            .flatten()
    })
}

fn saved(queue: &Queue) -> Vec<u8> {
    let mut bytes = Vec::new();
    queue.save(&mut |block| bytes.extend_from_slice(block));
    bytes
}

fn loaded(bytes: &[u8]) -> Result<Queue, String> {
    let mut blocks = [bytes].into_iter();
    Queue::load(Queue::VERSION, &mut || blocks.next().map(<[u8]>::to_vec))
}

/// Uses a queue at a moment, as a server would: a clock that is far ahead is cut first.
fn use_at(queue: &mut Queue, us: u64) {
    let moment = Moment::at_us(us);
    let lead = queue.lead(moment);
    if lead > MAX_LEAD {
        queue.cut_lead(lead, moment.ms());
    }
    let now = queue.now(moment);
    for _ in 0..8 {
        queue.advance(now, 100);
    }
    let fetch = Fetch {
        count: 10,
        ..Fetch::one()
    };
    queue.apply(&Op::fetch(fetch), moment).ok();
    queue.apply(&Op::Tick, moment).ok();
    queue.take_effects();
}

/// Checks that a queue goes on, and can be saved and loaded at each moment.
fn check(mut queue: Queue, from: &[u8]) {
    let again = |queue: &Queue, when: &str| {
        let kept = saved(queue);
        let again = loaded(&kept);
        let again = again.unwrap_or_else(|why| panic!("{when}: {why}: {from:02x?}"));
        assert!(saved(&again) == kept, "{when}: it differs: {from:02x?}");
    };
    again(&queue, "when it was loaded");
    for us in [LATER, END] {
        use_at(&mut queue, us);
        again(&queue, "after it was used");
    }
}

/// The frames of a snapshot.
fn frames(bytes: &[u8]) -> Vec<&[u8]> {
    let mut reader = Reader::new(bytes);
    let mut frames = Vec::new();
    while !reader.is_at_end() {
        frames.push(reader.bytes().unwrap());
    }
    frames
}

#[test]
fn no_number_of_a_snapshot_makes_a_queue_endless() {
    let mut accepted = 0;
    for seed in seeds("snapshot") {
        let frames = frames(&seed);
        for (number, frame) in frames.iter().enumerate() {
            for forged in all_forged(frame) {
                let mut bytes = Vec::new();
                for (other, frame) in frames.iter().enumerate() {
                    let frame = if other == number { &*forged } else { frame };
                    put_number(&mut bytes, frame.len() as u64);
                    bytes.extend_from_slice(frame);
                }
                if let Ok(queue) = loaded(&bytes) {
                    accepted += 1;
                    check(queue, &bytes);
                }
            }
        }
    }
    assert!(accepted > 1000, "only {accepted} were accepted");
}

/// Replays entries, of which each may be a part of a snapshot.
fn replay(entries: &[&[u8]]) -> Queue {
    let creation = Creation {
        settings: Settings::default(),
        clock: Clock::Server,
        salt: 7,
    };
    let mut queue = creation.queue();
    let mut restoring = Restoring::default();
    for entry in entries {
        if let Ok(Some(chunk)) = Chunk::of(entry) {
            if let Ok(Some(whole)) = restoring.take(0, b"key", chunk) {
                queue = whole;
            }
            continue;
        }
        let Ok(entry) = LogEntry::decode(entry) else {
            continue;
        };
        // As many steps as a slice may have would take long, and end.
        if entry.before.steps > MAX_STEPS.min(1000) {
            continue;
        }
        if let Some(created) = &entry.created {
            queue = created.queue();
        }
        entry.replay(&mut queue).ok();
        queue.take_effects();
    }
    queue
}

#[test]
fn no_number_of_a_log_entry_makes_a_queue_endless() {
    for seed in seeds("log_entry") {
        let mut entries = Vec::new();
        let mut rest = &*seed;
        while let Some((len, after)) = rest.split_first() {
            let (entry, later) = after.split_at(after.len().min((*len).into()));
            entries.push(entry);
            rest = later;
        }
        for number in 0..entries.len() {
            for forged in all_forged(entries[number]) {
                // What is refused leaves the queue as if the entry were missing.
                if LogEntry::decode(&forged).is_err() && Chunk::of(&forged).is_err() {
                    continue;
                }
                let mut entries = entries.clone();
                entries[number] = &forged;
                check(replay(&entries), &forged);
            }
        }
    }
}
