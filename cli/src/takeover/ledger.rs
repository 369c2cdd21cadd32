//! The ledger of an import: a file with the exact bytes of each claimed job, from which an undo puts them back. It is
//! only added to. Each entry has a checksum, and one that was cut off by a kill is written again.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::Crc;
use serde_json::{json, Value as Json};

use super::record::{Bytes, Record};
use crate::failure::Failure;
use crate::text::hex;

/// The most bytes of an entry: no server has a longer value.
const MOST: u32 = 1 << 30;

/// The bytes that are read at once around an entry at a place of its own.
const NEAR: usize = 4096;

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Another queue, or another run with numbers from 1 on: its name, the key at the target and the marker.
    Run(String, Bytes, String),
    /// A job that was claimed.
    Job(Bytes),
    /// The number of a job that stays, and was put back.
    Stays(u64),
}

/// A ledger.
pub struct Ledger {
    file: File,
    path: PathBuf,
    /// The name of the ledger in leases.
    pub id: String,
    buffer: Vec<u8>,
    /// The run whose jobs are added.
    run: Option<Entry>,
    /// The number of the last job of each run, by its marker.
    last: BTreeMap<String, u64>,
}

impl Ledger {
    /// Opens a ledger, or makes it. `about` says which import it is of: one of another import is refused.
    pub fn open(path: &Path, about: &Json) -> Result<Ledger, Failure> {
        let error = |error: std::io::Error| fault(path, &error);
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(error)?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(
            |_| {
                Failure::mistake(format!(
                    "BUSY {}: another import writes this ledger",
                    path.display()
                ))
            },
        )?;
        let mut last = BTreeMap::new();
        let id;
        if file.metadata().map_err(error)?.len() == 0 {
            id = new_id()?;
            let line = json!({ "dq-ledger": 1, "id": id, "about": about });
            file.write_all(format!("{line}\n").as_bytes())
                .map_err(error)?;
            file.sync_all().map_err(error)?;
        } else {
            let mut reader = Reader::open(path)?;
            id = reader.id.clone();
            if reader.about != *about {
                return Err(Failure::mistake(format!(
                    "{}: this is the ledger of another import ({}): name another one with --ledger",
                    path.display(),
                    reader.about
                )));
            }
            let mut run = None;
            while let Some(entry) = reader.next()? {
                match (entry, &run) {
                    (Entry::Run(_, _, marker), _) => run = Some(marker),
                    (Entry::Job(packed), Some(marker)) => {
                        let number = Record::unpack(packed).map_or(0, |record| record.number);
                        last.insert(marker.clone(), number);
                    }
                    _ => {}
                }
            }
            let good = reader.at;
            file.set_len(good).map_err(error)?;
            file.seek(SeekFrom::End(0)).map_err(error)?;
        }
        Ok(Ledger {
            file,
            path: path.to_owned(),
            id,
            buffer: Vec::new(),
            run: None,
            last,
        })
    }

    /// Says of which run the next jobs are. Returns the number of the last job of it that the ledger has.
    pub fn turn(&mut self, queue: &str, key: &[u8], marker: &str) -> u64 {
        let run = Entry::Run(queue.to_owned(), key.to_vec(), marker.to_owned());
        if self.run.as_ref() != Some(&run) {
            self.add(&run);
            self.run = Some(run);
        }
        self.last.get(marker).copied().unwrap_or(0)
    }

    /// Adds a job of the run, unless the ledger has it.
    pub fn add_job(&mut self, marker: &str, record: &Record) {
        let last = self.last.entry(marker.to_owned()).or_insert(0);
        if record.number > *last {
            *last = record.number;
            self.add(&Entry::Job(record.packed.clone()));
        }
    }

    /// Adds an entry.
    pub fn add(&mut self, entry: &Entry) {
        let (kind, body) = match entry {
            Entry::Run(queue, key, marker) => {
                let key = rmpv::Value::Binary(key.clone());
                let value =
                    rmpv::Value::Array(vec![queue.as_str().into(), key, marker.as_str().into()]);
                let mut bytes = Vec::new();
                // Writing into memory does not fail.
                let _ = rmpv::encode::write_value(&mut bytes, &value);
                (b'R', bytes)
            }
            Entry::Job(packed) => (b'J', packed.clone()),
            Entry::Stays(number) => (b'S', number.to_le_bytes().to_vec()),
        };
        let mut crc = Crc::new();
        crc.update(&body);
        self.buffer.push(kind);
        self.buffer.extend((body.len() as u32).to_le_bytes());
        self.buffer.extend(crc.sum().to_le_bytes());
        self.buffer.extend(body);
    }

    /// Writes what was added to the file.
    pub fn write(&mut self) -> Result<(), Failure> {
        self.file
            .write_all(&self.buffer)
            .map_err(|error| fault(&self.path, &error))?;
        self.buffer.clear();
        Ok(())
    }

    /// Returns the file, for the one who waits until the disk has what was written.
    pub fn file(&self) -> Result<File, Failure> {
        self.file
            .try_clone()
            .map_err(|error| fault(&self.path, &error))
    }
}

/// Reads a ledger from its beginning.
pub struct Reader {
    file: BufReader<File>,
    path: PathBuf,
    /// The name of the ledger.
    pub id: String,
    /// Which import it is of.
    pub about: Json,
    /// Where the next entry begins.
    pub at: u64,
}

impl Reader {
    /// Opens a ledger.
    pub fn open(path: &Path) -> Result<Reader, Failure> {
        let file = File::open(path).map_err(|error| fault(path, &error))?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        let mut line = String::new();
        let wrong = || {
            Failure::mistake(format!(
                "{}: this is no ledger of dq import",
                path.display()
            ))
        };
        let head = std::io::BufRead::read_line(&mut file, &mut line).map_err(|_| wrong())?;
        let head_json: Json = serde_json::from_str(&line).map_err(|_| wrong())?;
        let id = match (&head_json["dq-ledger"], &head_json["id"]) {
            (Json::Number(one), Json::String(id)) if one.as_u64() == Some(1) => id.clone(),
            _ => return Err(wrong()),
        };
        Ok(Reader {
            file,
            path: path.to_owned(),
            id,
            about: head_json["about"].clone(),
            at: head as u64,
        })
    }

    /// Reads the entry that begins at a place.
    pub fn entry_at(&mut self, at: u64) -> Result<Option<Entry>, Failure> {
        let mut file = self.file.get_ref();
        file.seek(SeekFrom::Start(at))
            .map_err(|error| fault(&self.path, &error))?;
        // Such places are far apart, and what is behind them is not wanted.
        let mut file = BufReader::with_capacity(NEAR, file);
        Ok(read(&mut file).and_then(|(entry, _)| entry))
    }

    /// Reads the next entry. `None` at the end, and where the last one was cut off.
    pub fn next(&mut self) -> Result<Option<Entry>, Failure> {
        let Some((entry, length)) = read(&mut self.file) else {
            return Ok(None);
        };
        self.at += length;
        Ok(entry)
    }
}

/// Reads an entry, and how many bytes it has. `None` where it was cut off.
fn read(file: &mut impl Read) -> Option<(Option<Entry>, u64)> {
    let mut head = [0; 9];
    file.read_exact(&mut head).ok()?;
    let [kind, l0, l1, l2, l3, c0, c1, c2, c3] = head;
    let length = u32::from_le_bytes([l0, l1, l2, l3]);
    if length > MOST {
        return None;
    }
    let mut body = Vec::new();
    let count = file.take(u64::from(length)).read_to_end(&mut body).ok()?;
    let mut crc = Crc::new();
    crc.update(&body);
    if count != length as usize || crc.sum() != u32::from_le_bytes([c0, c1, c2, c3]) {
        return None;
    }
    let entry = match kind {
        b'J' => Some(Entry::Job(body)),
        b'S' => <[u8; 8]>::try_from(body)
            .ok()
            .map(|n| Entry::Stays(u64::from_le_bytes(n))),
        b'R' => run(&body),
        _ => None,
    };
    Some((entry, 9 + u64::from(length)))
}

fn run(body: &[u8]) -> Option<Entry> {
    let rmpv::Value::Array(parts) = rmpv::decode::read_value(&mut &*body).ok()? else {
        return None;
    };
    let [queue, key, marker] = <[rmpv::Value; 3]>::try_from(parts).ok()?;
    let key = key.as_slice()?.to_vec();
    Some(Entry::Run(
        queue.as_str()?.to_owned(),
        key,
        marker.as_str()?.to_owned(),
    ))
}

fn fault(path: &Path, error: &std::io::Error) -> Failure {
    Failure::mistake(format!("LEDGER {}: {error}", path.display()))
}

/// Returns a new random name.
pub fn new_id() -> Result<String, Failure> {
    let mut bytes = [0; 12];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
        .map_err(|_| Failure::mistake("the system gives no random numbers"))?;
    Ok(hex(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_goes_on_behind_its_last_whole_entry() {
        let path = std::env::temp_dir().join(format!("dq-ledger-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let about = json!({"peer": "bullmq"});
        let mut ledger = Ledger::open(&path, &about).unwrap();
        assert!(Ledger::open(&path, &about).is_err());
        assert_eq!(ledger.turn("mails", b"dq:mails", "m1"), 0);
        let job = crate::takeover::record::tests::packed("wait", "", "1", &[], &[]);
        ledger.add_job("m1", &job);
        ledger.add_job("m1", &job);
        ledger.write().unwrap();
        let whole = std::fs::metadata(&path).unwrap().len();
        ledger.add(&Entry::Stays(7));
        ledger.write().unwrap();
        drop(ledger);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(whole + 5).unwrap();
        let mut ledger = Ledger::open(&path, &about).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), whole);
        assert_eq!(ledger.turn("mails", b"dq:mails", "m1"), job.number);
        assert_eq!(ledger.turn("mails", b"dq:mails", "m2"), 0);
        ledger.write().unwrap();
        drop(ledger);
        let mut reader = Reader::open(&path).unwrap();
        let first = reader.next().unwrap();
        assert_eq!(
            first,
            Some(Entry::Run(
                "mails".to_owned(),
                b"dq:mails".to_vec(),
                "m1".to_owned()
            ))
        );
        assert_eq!(reader.next().unwrap(), Some(Entry::Job(job.packed)));
        assert!(Ledger::open(&path, &json!({"peer": "celery"})).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
