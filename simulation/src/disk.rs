//! What outlives a crash: a snapshot, and the records since.

use crate::{loaded, saved};
use dq_queue::codec::log_entry::{Chunk, LogEntry};
use dq_queue::codec::restore::Restoring;
use dq_queue::codec::verbatim;
use dq_queue::Queue;

/// A record in the log comes after its length.
const LENGTH: usize = 4;
/// What a record begins with whose operation travelled as the command it was: then
/// its time does not count.
const COMMAND: u8 = 1;
/// What all others begin with.
const WHOLE: u8 = 0;

/// How a snapshot was written.
enum Base {
    /// As in an RDB file or a preamble.
    Snapshot(Vec<u8>),
    /// As commands: an append-only file without preamble.
    Chunks(Vec<Vec<u8>>),
}

/// The log of one queue.
pub struct Disk {
    base: Base,
    bytes: Vec<u8>,
    /// Where each record ends.
    ends: Vec<usize>,
}

impl Disk {
    /// A log that begins with this queue.
    pub fn new(queue: &Queue, as_commands: bool) -> Disk {
        let base = match as_commands {
            false => Base::Snapshot(saved(queue)),
            true => {
                let mut chunks = Vec::new();
                queue.rewrite(&mut |chunk| chunks.push(chunk.to_vec()));
                Base::Chunks(chunks)
            }
        };
        Disk {
            base,
            bytes: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// How many records there are.
    pub fn records(&self) -> usize {
        self.ends.len()
    }

    /// Appends a record, or the command of its operation.
    pub fn append(&mut self, record: &LogEntry<'_, '_>, as_command: bool) {
        let start = self.bytes.len();
        self.bytes.extend([0; LENGTH]);
        self.bytes.push(if as_command { COMMAND } else { WHOLE });
        record.encode_into(&mut self.bytes);
        let length = (self.bytes.len() - start - LENGTH) as u32;
        self.bytes[start..start + LENGTH].copy_from_slice(&length.to_le_bytes());
        self.ends.push(self.bytes.len());
    }

    /// The bytes of one record, behind that of its form.
    pub fn record(&self, number: usize) -> &[u8] {
        self.entry(number)
            .split_first()
            .map_or(&[], |(_, bytes)| bytes)
    }

    /// What a replica hears of one record.
    pub fn entry(&self, number: usize) -> &[u8] {
        let start = match number {
            0 => 0,
            after => self.ends[after - 1],
        };
        &self.bytes[start + LENGTH..self.ends[number]]
    }

    /// Loses everything behind the first records and so many bytes of the next
    /// one, if there is a next one.
    pub fn tear(&mut self, whole: usize, more: usize) {
        let end = match whole {
            0 => 0,
            whole => self.ends[whole - 1],
        };
        let torn = match self.ends.get(whole) {
            Some(next) => (end + more).min(next - 1),
            None => end,
        };
        self.bytes.truncate(torn);
        self.ends.truncate(whole);
    }

    /// The queue that a server finds here when it starts: the snapshot, then
    /// every record up to the torn one.
    pub fn recover(&self) -> Result<Queue, String> {
        let mut queue = match &self.base {
            Base::Snapshot(bytes) => loaded(bytes, 64 * 1024)?,
            Base::Chunks(chunks) => {
                let (mut restoring, mut whole) = (Restoring::default(), None);
                for chunk in chunks {
                    let chunk = Chunk::of(chunk)?.ok_or("a chunk is a record")?;
                    whole = restoring.take(0, b"key", chunk)?;
                }
                whole.ok_or("the chunks do not end")?
            }
        };
        let mut rest = &self.bytes[..];
        while let Some((length, after)) = rest.split_at_checked(LENGTH) {
            let length = u32::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
            let Some((bytes, later)) = after.split_at_checked(length) else {
                break;
            };
            hear(&mut queue, bytes)?;
            rest = later;
        }
        Ok(queue)
    }
}

/// What a replica and a server that loads its log do with a record.
pub fn hear(queue: &mut Queue, entry: &[u8]) -> Result<(), String> {
    let (form, bytes) = entry.split_first().ok_or("an empty record")?;
    let record = LogEntry::decode(bytes)?;
    match *form {
        COMMAND => verbatim::log_entry(queue, &record.op).replay(queue)?,
        _ => record.replay(queue)?,
    };
    if record.created.is_some() {
        queue.made_at(record.moment());
    }
    queue.take_effects();
    Ok(())
}
