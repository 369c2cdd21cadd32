//! The states that a search has reached: for each of them the state before it and the action, and
//! of all of them the digests. A state itself is made again from its path, so that millions of them
//! fit into memory.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// How a state was reached first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// The number of the state before it. The first state is its own.
    pub from: u32,
    /// The number of the action in the list.
    pub action: u8,
    /// The number of actions from the first state on.
    pub depth: u8,
}

/// The bytes of a state in the file: how it was reached, and its digest.
const BYTES: usize = 14;

/// All states that were reached, in the order in which they were.
#[derive(Debug, Default)]
pub struct Store {
    reached: Vec<Reached>,
    digests: HashSet<u64>,
    /// Those of the states that are not in the file yet.
    unsaved: Vec<u8>,
    /// The number of states whose actions were all done.
    pub done: usize,
}

impl Store {
    /// Adds a state unless one with its digest was reached before. Returns whether it was new.
    pub fn add(&mut self, digest: u64, reached: Reached) -> bool {
        if !self.digests.insert(digest) {
            return false;
        }
        self.reached.push(reached);
        self.unsaved.extend(reached.from.to_le_bytes());
        self.unsaved.extend([reached.action, reached.depth]);
        self.unsaved.extend(digest.to_le_bytes());
        true
    }

    /// Whether a state with this digest was reached before.
    pub fn knows(&self, digest: u64) -> bool {
        self.digests.contains(&digest)
    }

    /// The number of states.
    pub fn len(&self) -> usize {
        self.reached.len()
    }

    /// How a state was reached.
    pub fn get(&self, number: usize) -> Option<Reached> {
        self.reached.get(number).copied()
    }

    /// The numbers of the actions that lead to a state.
    pub fn path(&self, number: usize) -> Vec<u8> {
        let mut path = Vec::new();
        let mut at = number;
        while let Some(reached) = self.get(at).filter(|_| at > 0) {
            path.push(reached.action);
            at = reached.from as usize;
        }
        path.reverse();
        path
    }

    /// Reads the states of an earlier search, if the file has any. `of` says what was searched: a
    /// file of anything else is passed over.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn load(path: &Path, of: &str) -> io::Result<Store> {
        let mut store = Store::default();
        let Ok(head) = fs::read_to_string(head_of(path)) else {
            return Ok(store);
        };
        let Some((done, told)) = head.split_once('\n') else {
            return Ok(store);
        };
        if told != of {
            return Ok(store);
        }
        let mut bytes = Vec::new();
        File::open(path)?.read_to_end(&mut bytes)?;
        for state in bytes.chunks_exact(BYTES) {
            let (head, digest) = state.split_at(6);
            let number = |bytes: &[u8]| {
                bytes
                    .iter()
                    .rev()
                    .fold(0, |n, byte| n << 8 | u64::from(*byte))
            };
            let [.., action, depth] = *head else {
                continue;
            };
            let from = number(head.get(..4).unwrap_or_default()) as u32;
            let reached = Reached {
                from,
                action,
                depth,
            };
            store.add(number(digest), reached);
        }
        store.unsaved.clear();
        store.done = done.parse().unwrap_or(0).min(store.len());
        Ok(store)
    }

    /// Appends the new states to the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&mut self, path: &Path, of: &str) -> io::Result<()> {
        let is_new = self.unsaved.len() == self.len() * BYTES;
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(is_new)
            .append(!is_new)
            .open(path)?;
        file.write_all(&self.unsaved)?;
        file.sync_data()?;
        self.unsaved.clear();
        fs::write(head_of(path), format!("{}\n{of}", self.done))
    }
}

/// The file that says how far a search has come.
fn head_of(path: &Path) -> PathBuf {
    path.with_extension("head")
}
