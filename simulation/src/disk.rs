//! The log of a server, which survives a crash: a snapshot, and the log entries
//! since.

use crate::{loaded, saved};
use dq_queue::codec::effect;
use dq_queue::codec::log_entry::{Chunk, LogEntry};
use dq_queue::codec::restore::Restoring;
use dq_queue::codec::verbatim;
use dq_queue::effect::plain::PlainKeys;
use dq_queue::Queue;

/// An effect of an acknowledgement in the log: its key, and its encoded form.
pub type Logged = (Vec<u8>, Vec<u8>);

/// Bytes of the length that comes before each entry of the log.
const LENGTH: usize = 4;
/// First byte of an entry that was replicated verbatim. Its time does not count.
const COMMAND: u8 = 1;
/// First byte of all other entries.
const WHOLE: u8 = 0;

/// The snapshot that a log begins with, in the form in which it was written.
enum Base {
    /// A snapshot as in an RDB file or the preamble of an append-only file.
    Snapshot(Vec<u8>),
    /// Commands, as in an append-only file without preamble.
    Chunks(Vec<Vec<u8>>),
}

/// The log of one queue.
pub struct Disk {
    base: Base,
    /// The plain keys when the log began.
    keys: PlainKeys,
    bytes: Vec<u8>,
    /// Offset in `bytes` behind each entry.
    ends: Vec<usize>,
}

impl Disk {
    /// Creates a log that begins with a snapshot of this queue, written as
    /// commands or not, and with these plain keys.
    pub fn new(queue: &Queue, keys: &PlainKeys, as_commands: bool) -> Disk {
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
            keys: keys.clone(),
            bytes: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Returns the number of entries behind the snapshot.
    pub fn records(&self) -> usize {
        self.ends.len()
    }

    /// Appends an entry with the effects that belong to it. `as_command` says that
    /// its operation is replicated verbatim.
    pub fn append(&mut self, record: &LogEntry<'_, '_>, effects: &[Logged], as_command: bool) {
        let start = self.bytes.len();
        self.bytes.extend([0; LENGTH]);
        self.bytes.push(if as_command { COMMAND } else { WHOLE });
        self.bytes.push(effects.len() as u8);
        for text in effects.iter().flat_map(|(key, effect)| [key, effect]) {
            self.bytes.push(text.len() as u8);
            self.bytes.extend_from_slice(text);
        }
        record.encode_into(&mut self.bytes);
        let length = (self.bytes.len() - start - LENGTH) as u32;
        self.bytes[start..start + LENGTH].copy_from_slice(&length.to_le_bytes());
        self.ends.push(self.bytes.len());
    }

    /// Returns the encoded entry of this number, without the byte of its form and
    /// without effects.
    pub fn record(&self, number: usize) -> &[u8] {
        parts(self.entry(number)).map_or(&[], |parts| parts.record)
    }

    /// Returns the form in which a replica gets the entry of this number: the byte of its
    /// form, the effects, then the encoded entry.
    pub fn entry(&self, number: usize) -> &[u8] {
        let start = match number {
            0 => 0,
            after => self.ends[after - 1],
        };
        &self.bytes[start + LENGTH..self.ends[number]]
    }

    /// Loses all bytes behind the first `whole` entries and `more` bytes of the next one.
    /// The next one, if there is one, is never left whole.
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

    /// Returns the queue and the plain keys that a server loads when it starts: the
    /// snapshot, with every entry up to the torn one applied.
    ///
    /// # Errors
    /// A sentence that says why the snapshot or an entry cannot be read.
    pub fn recover(&self) -> Result<(Queue, PlainKeys), String> {
        let mut keys = self.keys.clone();
        let mut queue = match &self.base {
            Base::Snapshot(bytes) => loaded(bytes, 64 * 1024)?,
            Base::Chunks(chunks) => {
                let (mut restoring, mut whole) = (Restoring::default(), None);
                for chunk in chunks {
                    let chunk =
                        Chunk::of(chunk)?.ok_or("a chunk of the snapshot is a log entry")?;
                    whole = restoring.take(0, b"key", chunk)?;
                }
                whole.ok_or("the chunks of the snapshot do not end")?
            }
        };
        let mut rest = &self.bytes[..];
        while let Some((length, after)) = rest.split_at_checked(LENGTH) {
            let length = u32::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
            let Some((bytes, later)) = after.split_at_checked(length) else {
                break;
            };
            apply_entry(&mut queue, &mut keys, bytes)?;
            rest = later;
        }
        Ok((queue, keys))
    }
}

/// The parts of an entry.
struct Parts<'e> {
    /// The byte of its form.
    form: u8,
    /// Its effects, each behind its key.
    effects: Vec<(&'e [u8], &'e [u8])>,
    /// The encoded entry of the queue.
    record: &'e [u8],
}

fn parts(entry: &[u8]) -> Option<Parts<'_>> {
    let (form, rest) = entry.split_first()?;
    let (count, mut rest) = rest.split_first()?;
    let mut text = || {
        let (len, after) = rest.split_first()?;
        let (text, after) = after.split_at_checked(usize::from(*len))?;
        rest = after;
        Some(text)
    };
    let effects: Option<Vec<_>> = (0..*count).map(|_| Some((text()?, text()?))).collect();
    Some(Parts {
        form: *form,
        effects: effects?,
        record: rest,
    })
}

/// Applies an entry of the log with its effects, as a replica does and a server that loads its log.
///
/// # Errors
/// A sentence that says why the entry cannot be read or replayed.
pub fn apply_entry(queue: &mut Queue, keys: &mut PlainKeys, entry: &[u8]) -> Result<(), String> {
    let entry = parts(entry).ok_or("a log entry without its parts")?;
    for (key, effect) in entry.effects {
        let effect = effect::decode(effect)?.ok_or("an effect is no effect in the log")?;
        keys.repeat(key, &effect)?;
    }
    let record = LogEntry::decode(entry.record)?;
    match entry.form {
        COMMAND => verbatim::log_entry(queue, &record.op).replay(queue)?,
        _ => record.replay(queue)?,
    };
    if record.created.is_some() {
        queue.made_at(record.moment());
    }
    queue.take_effects();
    Ok(())
}
