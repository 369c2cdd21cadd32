//! The dictionaries of a queue, and how much they save.

use std::sync::Arc;

use super::Store;
use crate::message::packing::{Dictionary, DICTIONARIES};

/// How much packing saves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Bytes of the packed payloads as they were sent.
    pub before: u64,
    /// Bytes of the packed payloads as they are kept.
    pub after: u64,
    /// Bytes of the dictionaries.
    pub dictionaries: u64,
}

/// The dictionaries of a queue, by their numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Dictionaries {
    slots: Vec<Slot>,
    /// Bytes of the packed payloads as they were sent.
    pub before: u64,
    /// Bytes of the packed payloads as they are kept.
    pub after: u64,
    /// The number of the dictionary with which payloads are packed now.
    pub current: Option<u8>,
}

#[derive(Debug, Clone, Default)]
struct Slot {
    dictionary: Option<Arc<Dictionary>>,
    /// The payloads that are packed with it.
    uses: u64,
}

impl Dictionaries {
    pub fn get(&self, number: u8) -> Option<&Arc<Dictionary>> {
        self.slots.get(usize::from(number))?.dictionary.as_ref()
    }

    /// Adds a dictionary under a number of its own; `None` if there are too many.
    pub fn add(&mut self, dictionary: Arc<Dictionary>) -> Option<u8> {
        let free = self.slots.iter().position(|slot| slot.dictionary.is_none());
        let number = free.unwrap_or(self.slots.len());
        self.set(number as u8, dictionary).then_some(number as u8)
    }

    /// Adds a dictionary under this number. Returns whether the number is free and small enough.
    pub fn set(&mut self, number: u8, dictionary: Arc<Dictionary>) -> bool {
        let number = usize::from(number);
        if number >= DICTIONARIES {
            return false;
        }
        if self.slots.len() <= number {
            self.slots.resize_with(number + 1, Slot::default);
        }
        match self.slots.get_mut(number) {
            Some(slot) if slot.dictionary.is_none() => slot.dictionary = Some(dictionary),
            _ => return false,
        }
        true
    }

    /// Counts a payload that is packed from now on with a dictionary.
    pub fn used(&mut self, number: u8, before: usize, after: usize) {
        if let Some(slot) = self.slots.get_mut(usize::from(number)) {
            slot.uses += 1;
            self.before += before as u64;
            self.after += after as u64;
        }
    }

    /// Counts a packed payload that is gone, and drops its dictionary if nothing needs it any more.
    pub fn unused(&mut self, number: u8, before: usize, after: usize) {
        if let Some(slot) = self.slots.get_mut(usize::from(number)) {
            slot.uses -= 1;
            self.before -= before as u64;
            self.after -= after as u64;
            self.drop_unused(number);
        }
    }

    /// Drops a dictionary if nothing needs it.
    fn drop_unused(&mut self, number: u8) {
        let is_current = self.current == Some(number);
        if let Some(slot) = self.slots.get_mut(usize::from(number)) {
            if slot.uses == 0 && !is_current {
                slot.dictionary = None;
            }
        }
    }

    /// Drops all dictionaries that nothing needs.
    pub fn drop_all_unused(&mut self) {
        (0..self.slots.len()).for_each(|number| self.drop_unused(number as u8));
    }

    /// Packs with the dictionary of this number from now on, or with none.
    pub fn set_current(&mut self, number: Option<u8>) {
        let last = std::mem::replace(&mut self.current, number);
        if let Some(last) = last {
            self.drop_unused(last);
        }
    }

    /// All dictionaries with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &Arc<Dictionary>)> + '_ {
        let slots = self.slots.iter().zip(0..);
        slots.filter_map(|(slot, number)| Some((number, slot.dictionary.as_ref()?)))
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> usize {
        let dictionaries = self.iter().map(|(_, dictionary)| dictionary.memory_bytes());
        self.slots.capacity() * size_of::<Slot>() + dictionaries.sum::<usize>()
    }
}

impl Store {
    /// How much packing saves.
    pub fn packing_sums(&self) -> Sums {
        self.bodies
            .dictionaries
            .as_ref()
            .map_or(Sums::default(), |all| Sums {
                before: all.before,
                after: all.after,
                dictionaries: all.memory_bytes() as u64,
            })
    }

    /// Whether payloads are packed, or ever were.
    pub fn packs(&self) -> bool {
        self.packing.is_some() || self.current_dictionary().is_some()
    }

    /// An empty store that goes on with the dictionaries of this one.
    pub fn like(&self) -> Store {
        let mut store = Store::default();
        store.set_packing(self.packing.is_some());
        if let Some(dictionary) = self.current_dictionary() {
            store.use_dictionary(Arc::clone(dictionary));
        }
        store
    }

    /// The dictionaries with their numbers, and whether payloads are packed with them now.
    pub fn dictionaries(&self) -> impl Iterator<Item = (u8, &Arc<Dictionary>, bool)> + '_ {
        let all = self.bodies.dictionaries.iter();
        all.flat_map(|all| all.iter().map(|(n, one)| (n, one, all.current == Some(n))))
    }

    /// Adds a dictionary of a saved store under its number there. Returns whether that is possible:
    /// the number is free, and at most one is current.
    pub fn add_dictionary(&mut self, number: u8, of: Arc<Dictionary>, is_current: bool) -> bool {
        let all = self.bodies.dictionaries.get_or_insert_default();
        if is_current && all.current.is_some() || !all.set(number, of) {
            return false;
        }
        if is_current {
            all.set_current(Some(number));
            if let Some(packing) = &mut self.packing {
                packing.begin();
            }
        }
        true
    }

    /// Drops the dictionaries that no payload and no packing needs.
    pub fn drop_unused_dictionaries(&mut self) {
        if let Some(all) = &mut self.bodies.dictionaries {
            all.drop_all_unused();
        }
    }

    /// The dictionary with which payloads are packed now.
    pub(super) fn current_dictionary(&self) -> Option<&Arc<Dictionary>> {
        let all = self.bodies.dictionaries.as_ref()?;
        all.get(all.current?)
    }

    /// Packs with this dictionary from now on. Returns whether there is room for one more.
    pub(super) fn use_dictionary(&mut self, dictionary: Arc<Dictionary>) -> bool {
        let all = self.bodies.dictionaries.get_or_insert_default();
        let Some(number) = all.add(dictionary) else {
            return false;
        };
        all.set_current(Some(number));
        if let Some(packing) = &mut self.packing {
            packing.begin();
        }
        true
    }
}
