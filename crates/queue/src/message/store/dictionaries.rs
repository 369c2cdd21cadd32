//! The dictionaries of a queue, and how much they save.

use std::sync::Arc;

use crate::message::packing::{Dictionary, DICTIONARIES};

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
            if slot.uses == 0 && self.current != Some(number) {
                slot.dictionary = None;
            }
        }
    }

    /// Packs with the dictionary of this number from now on, or with none.
    pub fn set_current(&mut self, number: Option<u8>) {
        let last = std::mem::replace(&mut self.current, number);
        let slot = last.and_then(|last| self.slots.get_mut(usize::from(last)));
        if let Some(slot) = slot.filter(|slot| slot.uses == 0 && last != number) {
            slot.dictionary = None;
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
