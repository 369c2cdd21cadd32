//! Any number in a snapshot or a log entry may be forged, alone or with another one: beyond its
//! bound it is refused, and within it the queue can go on until the end of time in bounded steps,
//! and can be saved and loaded again.

use std::fs;
use std::ops::Range;
use std::path::Path;

use crate::codec::bounds::Bound;
use crate::codec::log_entry::{Chunk, Creation, LogEntry};
use crate::codec::restore::Restoring;
use crate::codec::snapshot::read::Decoder;
use crate::codec::wire::{put_delta, put_number, put_signed, Coded, Reader, READ};
use crate::limits::MAX_STEPS;
use crate::op::Fetch;
use crate::queue::MAX_LEAD;
use crate::settings::{Clock, Settings};
use crate::{Moment, Op, Queue, MAX_EXACT};

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

/// A number that a reader has read.
#[derive(Clone, Copy)]
struct Read {
    /// Where it begins.
    at: usize,
    /// How many bytes it takes.
    len: usize,
    bound: &'static Bound,
    coded: Coded,
}

/// The numbers that are read of these bytes, in their order.
fn numbers(bytes: &[u8], read: impl FnOnce()) -> Vec<Read> {
    READ.set(Some(Vec::new()));
    read();
    let all = READ.take().unwrap();
    let begin = bytes.as_ptr() as usize;
    let within = all.into_iter().filter_map(|(at, bound, coded)| {
        let at = at.checked_sub(begin).filter(|at| *at < bytes.len())?;
        let mut reader = Reader::new(&bytes[at..]);
        reader.any().ok()?;
        let len = bytes.len() - at - reader.rest().len();
        Some(Read {
            at,
            len,
            bound,
            coded,
        })
    });
    let mut within: Vec<Read> = within.collect();
    within.sort_by_key(|read| read.at);
    within.dedup_by_key(|read| read.at);
    within
}

impl Read {
    /// The numbers that are put in its place: its bounds, what is just beyond them, and what goes
    /// round.
    fn forged(&self) -> Vec<u64> {
        let Bound { least, most, .. } = *self.bound;
        let mut all = vec![least, most, 1 << 63, u64::MAX, MAX_EXACT];
        all.extend(least.checked_sub(1));
        all.extend(most.checked_add(1));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Writes a number as this one is written.
    fn put(&self, out: &mut Vec<u8>, n: u64) {
        match self.coded {
            Coded::Plainly => put_number(out, n),
            Coded::Signed => put_signed(out, n as i64),
            Coded::From(base) => put_delta(out, n, base),
        }
    }

    /// Whether a reader must refuse this number.
    fn refuses(&self, n: u64) -> bool {
        match self.coded {
            Coded::Signed => (n as i64).unsigned_abs() > self.bound.most,
            _ => self.bound.check(n).is_err(),
        }
    }
}

/// The bytes with numbers in place of those that were read, in their order, and whether a reader
/// must refuse them.
fn with(bytes: &[u8], forged: &[(Read, u64)]) -> (Vec<u8>, bool) {
    let (mut out, mut rest) = (Vec::new(), 0);
    for (read, n) in forged {
        out.extend_from_slice(&bytes[rest..read.at]);
        read.put(&mut out, *n);
        rest = read.at + read.len;
    }
    out.extend_from_slice(&bytes[rest..]);
    (out, forged.iter().any(|(read, n)| read.refuses(*n)))
}

/// All forms of bytes that differ from them in one number, or in two near each other. A pair is left out
/// if one of it must be refused anyway.
fn all_forged<'a>(
    bytes: &'a [u8],
    numbers: &'a [Read],
) -> impl Iterator<Item = (Vec<u8>, bool)> + 'a {
    let each = |read: &Read| {
        let read = *read;
        read.forged().into_iter().map(move |n| (read, n))
    };
    let alone = numbers.iter().flat_map(each).map(|one| with(bytes, &[one]));
    // Numbers of one kind stand up to three apart, as the times and the counts of a window.
    let pairs = (2..=4).flat_map(move |reach| numbers.windows(reach));
    let pairs = pairs.filter_map(|some| Some((some.first()?, some.last()?)));
    let pairs = pairs.flat_map(move |(first, last)| {
        each(first).flat_map(move |a| each(last).map(move |b| [a, b]))
    });
    let pairs = pairs.filter(|pair| pair.iter().all(|(read, n)| !read.refuses(*n)));
    alone.chain(pairs.map(|pair| with(bytes, &pair)))
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

/// The frames of a snapshot: where each begins and ends.
fn frames(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut reader = Reader::new(bytes);
    let mut frames = Vec::new();
    while !reader.is_at_end() {
        let len = reader.bytes().unwrap().len();
        let end = bytes.len() - reader.clone().rest().len();
        frames.push(end - len..end);
    }
    frames
}

#[test]
fn no_number_of_a_snapshot_makes_a_queue_endless() {
    let mut accepted = 0;
    for seed in seeds("snapshot") {
        let mut decoder = Decoder::new();
        // One of the seeds has bytes behind its end. It is read up to there.
        let numbers = numbers(&seed, || _ = decoder.feed(&seed));
        let frames = frames(&seed);
        for frame in &frames {
            let own = numbers.iter().filter(|read| frame.contains(&read.at));
            let own: Vec<Read> = own
                .map(|read| Read {
                    at: read.at - frame.start,
                    ..*read
                })
                .collect();
            for (forged, is_refused) in all_forged(&seed[frame.clone()], &own) {
                let mut bytes = Vec::new();
                for other in &frames {
                    let part = if other == frame {
                        &*forged
                    } else {
                        &seed[other.clone()]
                    };
                    put_number(&mut bytes, part.len() as u64);
                    bytes.extend_from_slice(part);
                }
                let queue = loaded(&bytes);
                assert!(
                    !is_refused || queue.is_err(),
                    "{forged:02x?} of {frame:?} is taken"
                );
                if let Ok(queue) = queue {
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
            let entry = entries[number];
            let numbers = numbers(entry, || drop(LogEntry::decode(entry)));
            for (forged, is_refused) in all_forged(entry, &numbers) {
                let refused = LogEntry::decode(&forged).is_err();
                assert!(!is_refused || refused, "{forged:02x?} is taken");
                // An entry that is refused leaves the queue as if the entry were missing.
                if refused {
                    continue;
                }
                let mut entries = entries.clone();
                entries[number] = &forged;
                check(replay(&entries), &forged);
            }
        }
    }
}
