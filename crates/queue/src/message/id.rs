//! Ids of messages: those that senders give, and those that the queue generates.
//!
//! A generated id is a UUIDv7 (RFC 9562) whose random part is the message's number
//! in the queue, shifted by a random salt of the queue. It is never stored and
//! needs no look-up table: it can be computed from the message, and the message
//! from it.
//!
//! A queue that was copied, or loaded from an older copy of itself, may have sent
//! the same numbers elsewhere. Its next message therefore starts a new salt, and
//! existing messages keep theirs. So a queue may have several salts, each for a
//! range of numbers.

use std::hash::{BuildHasher, Hasher};
use uuid::Uuid;

use super::body::Content;
use super::store::Store;
use super::Message;
use crate::collections::name_table::NameTable;
use crate::collections::rare::{unused, Rare};
use crate::{Millis, Seq};

/// Length of a generated id as text, in bytes.
pub const GENERATED_LEN: usize = 36;

/// The generated id of message `seq`, sent at `sent_at`, in a queue with this
/// `salt`.
///
/// Ids of one queue and one millisecond ascend in send order.
pub fn generated(seq: Seq, sent_at: Millis, salt: u64) -> [u8; GENERATED_LEN] {
    uuid_text(uuid(seq, sent_at, salt).as_bytes())
}

/// The text of a UUID. Every SEND and every delivery makes one.
pub(super) fn uuid_text(bytes: &[u8; 16]) -> [u8; GENERATED_LEN] {
    let mut hex = const_hex::Buffer::<16>::new();
    let digits = hex.format(bytes).as_bytes();
    let mut text = [b'-'; GENERATED_LEN];
    text[..8].copy_from_slice(&digits[..8]);
    text[9..13].copy_from_slice(&digits[8..12]);
    text[14..18].copy_from_slice(&digits[12..16]);
    text[19..23].copy_from_slice(&digits[16..20]);
    text[24..].copy_from_slice(&digits[20..]);
    text
}

fn uuid(seq: Seq, sent_at: Millis, salt: u64) -> Uuid {
    let token = seq.wrapping_add(salt);
    let tail = super::retry::mix(salt, seq) & 0x3FF;
    let time = u128::from(sent_at & 0xFFFF_FFFF_FFFF);
    let rand_a = u128::from(token >> 52);
    let rand_b = u128::from(token & 0xF_FFFF_FFFF_FFFF) << 10 | u128::from(tail);
    Uuid::from_u128(time << 80 | 0x7 << 76 | rand_a << 64 | 0b10 << 62 | rand_b)
}

/// The number plus the salt of the message that would have this generated id.
/// `None` if it cannot be a generated id. The caller must compare whether the
/// message really has it.
fn token_of(id: &[u8]) -> Option<u64> {
    if id.len() != GENERATED_LEN {
        return None;
    }
    let bits = Uuid::try_parse_ascii(id).ok()?.as_u128();
    if bits >> 76 & 0xF != 7 {
        return None;
    }
    let rand_a = (bits >> 64 & 0xFFF) as u64;
    let rand_b = (bits & 0x3FFF_FFFF_FFFF_FFFF) as u64;
    Some(rand_a << 52 | rand_b >> 10)
}

/// The id of a message as bytes.
#[derive(Debug, Clone, Copy)]
pub enum Id<'a> {
    /// The id that the sender gave.
    Given(&'a [u8]),
    /// The text of a UUID, which the queue generated or keeps as its bytes.
    Uuid([u8; GENERATED_LEN]),
}

impl Id<'_> {
    /// The bytes of the id.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Id::Given(id) => id,
            Id::Uuid(id) => id,
        }
    }

    /// A copy of the id on the heap.
    pub fn to_box(self) -> Box<[u8]> {
        self.as_bytes().into()
    }
}

impl PartialEq for Id<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Id<'_> {}

/// The hash function of all tables keyed by names that clients choose. It has a
/// random key per process, so that nobody can choose names that collide.
pub type NameHasher = foldhash::fast::RandomState;

/// Hashes a name.
pub fn hash_name(hasher: &NameHasher, name: &[u8]) -> u64 {
    let mut state = hasher.build_hasher();
    state.write(name);
    state.finish()
}

/// The number of a message with a given id, split in two: with its hash an entry of
/// the table takes 12 bytes, not 16.
#[derive(Debug, Clone, Copy)]
struct Given([u32; 2]);

impl Given {
    fn new(seq: Seq) -> Given {
        Given([(seq >> 32) as u32, seq as u32])
    }

    fn seq(&self) -> Seq {
        let Given([high, low]) = *self;
        Seq::from(high) << 32 | Seq::from(low)
    }
}

unused!(NameTable<Given>, Vec<(Seq, u64)>);

/// The ids of the messages of a queue.
#[derive(Debug, Clone)]
pub struct Ids {
    /// The salt for ids that are generated now.
    salt: u64,
    /// The number of the first message with this salt.
    since: Seq,
    /// Earlier salts in order, each with the number of the first message that has
    /// it.
    earlier: Rare<Vec<(Seq, u64)>>,
    hasher: NameHasher,
    given: Rare<NameTable<Given>>,
}

impl Ids {
    /// An empty table for a queue with this salt.
    pub fn new(salt: u64) -> Ids {
        Ids {
            salt,
            since: 0,
            earlier: Rare::default(),
            hasher: NameHasher::default(),
            given: Rare::default(),
        }
    }

    /// The salt for ids that are generated now.
    pub fn salt(&self) -> u64 {
        self.salt
    }

    /// The salt of the id that was generated for this number.
    #[inline]
    pub fn salt_of(&self, seq: Seq) -> u64 {
        match seq >= self.since {
            true => self.salt,
            false => self.earlier_salt_of(seq),
        }
    }

    #[cold]
    fn earlier_salt_of(&self, seq: Seq) -> u64 {
        let begun = self.earlier.partition_point(|(first, _)| *first <= seq);
        let last = self.earlier.get(..begun).and_then(|begun| begun.last());
        last.map_or(self.salt, |(_, salt)| *salt)
    }

    /// Starts a new salt with message `first`. The earlier one takes 16 bytes,
    /// until the queue is loaded again or gets another salt while it is empty.
    pub fn renew(&mut self, store: &Store, first: Seq, salt: u64) {
        if store.len() == 0 {
            self.earlier = Rare::default();
        } else {
            self.earlier.push((self.since, self.salt));
        }
        self.since = first;
        self.salt = salt;
    }

    /// Restores the salts from a snapshot. `salts` are those of the messages in it,
    /// in order, each with the number of its first message. `next_seq` is the
    /// number of the next message to be sent.
    pub fn restore_salts(&mut self, mut salts: Vec<(Seq, u64)>, next_seq: Seq) {
        self.since = match salts.last() {
            Some((first, salt)) if *salt == self.salt => *first,
            Some(_) => next_seq,
            None => 0,
        };
        salts.retain(|(first, _)| *first < self.since);
        self.earlier = Rare::unless(salts.is_empty(), salts);
    }

    /// The id of a message.
    pub fn of<'a>(&self, seq: Seq, message: &Message, content: Content<'a>) -> Id<'a> {
        match content.id {
            Some(id) => id.id(),
            None => Id::Uuid(generated(seq, message.sent_at, self.salt_of(seq))),
        }
    }

    /// The message with this generated id. O(salts).
    fn find_generated(&self, store: &Store, id: &[u8]) -> Option<Seq> {
        let token = token_of(id)?;
        let is = |seq: &Seq| {
            store.get(*seq).is_some_and(|message| {
                let made = || generated(*seq, message.sent_at, self.salt_of(*seq));
                !message.has_given_id() && made() == id
            })
        };
        let now = token.wrapping_sub(self.salt);
        let earlier = || {
            let salts = self.earlier.iter();
            let seqs = salts.map(|(_, salt)| token.wrapping_sub(*salt));
            seqs.filter(|seq| *seq < self.since).find(is)
        };
        Some(now).filter(is).or_else(earlier)
    }

    /// The message with this id. O(salts); there is one unless the queue was copied
    /// or loaded.
    pub fn find(&self, store: &Store, id: &[u8]) -> Option<Seq> {
        if let Some(seq) = self.find_generated(store, id) {
            return Some(seq);
        }
        if self.given.is_empty() {
            return None;
        }
        let hash = hash_name(&self.hasher, id);
        let is = |given: &Given| store.has_id(given.seq(), id);
        self.given.find(hash, is).map(Given::seq)
    }

    /// The message that was sent with the id that the queue would generate for the number
    /// `seq`, sent at `sent_at`. O(1), and no look-up if no message has a given id.
    pub fn find_given(&self, store: &Store, seq: Seq, sent_at: Millis) -> Option<Seq> {
        if self.given.is_empty() {
            return None;
        }
        let id = generated(seq, sent_at, self.salt);
        let hash = hash_name(&self.hasher, &id);
        let is = |given: &Given| store.has_id(given.seq(), &id);
        self.given.find(hash, is).map(Given::seq)
    }

    /// Adds a message of the store that has a given id, which must be unique. Does
    /// nothing for a message without one. O(1).
    pub fn insert(&mut self, store: &Store, seq: Seq) {
        let Some(id) = store.given_id(seq) else {
            return;
        };
        let hash = hash_name(&self.hasher, id.as_bytes());
        self.given.insert_unique(hash, Given::new(seq));
    }

    /// The hash of a given id in this table.
    pub fn hash_of(&self, id: &[u8]) -> u64 {
        hash_name(&self.hasher, id)
    }

    /// Adds messages of the store by the hashes of their given ids. Returns false
    /// if two have the same id, and stops there. O(n).
    pub fn insert_all(&mut self, store: &Store, hashed: &[(u64, Seq)]) -> bool {
        if self.given.is_empty() {
            let is_unused = hashed.is_empty();
            self.given = Rare::unless(is_unused, NameTable::with_capacity(hashed.len()));
        }
        hashed.iter().all(|(hash, seq)| {
            let id = store.given_id(*seq);
            let same = |other: &Given| store.given_id(other.seq()) == id;
            let is_new = self.given.find(*hash, same).is_none();
            if is_new {
                self.given.insert_unique(*hash, Given::new(*seq));
            }
            is_new
        })
    }

    /// Removes a message, which must still be in the store. O(1).
    pub fn remove(&mut self, store: &Store, seq: Seq) {
        if self.given.is_empty() {
            return;
        }
        let Some(id) = store.given_id(seq) else {
            return;
        };
        let hash = hash_name(&self.hasher, id.as_bytes());
        self.given.remove(hash, |given| given.seq() == seq);
    }

    /// Bytes allocated. O(1).
    pub fn memory_bytes(&self) -> usize {
        let boxes = self.given.box_bytes() + self.earlier.box_bytes();
        boxes + self.given.allocation_size() + self.earlier.capacity() * size_of::<(Seq, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_id_is_a_uuid_v7_with_the_time_of_sending() {
        let id = generated(1, 1_795_159_374_646, 0xDEAD_BEEF_0BAD_F00D);
        let parsed = Uuid::try_parse_ascii(&id).unwrap();
        assert_eq!(parsed.get_version_num(), 7);
        assert_eq!(parsed.get_variant(), uuid::Variant::RFC4122);
        let (seconds, nanos) = parsed.get_timestamp().unwrap().to_unix();
        assert_eq!(
            seconds * 1000 + u64::from(nanos) / 1_000_000,
            1_795_159_374_646
        );
    }

    #[test]
    fn ids_are_formatted_as_the_uuid_crate_formats_them() {
        let mut bits = 1u128;
        for _ in 0..2000 {
            bits = bits.wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645) + 7;
            let uuid = Uuid::from_u128(bits);
            assert_eq!(uuid_text(uuid.as_bytes()), uuid.to_string().as_bytes());
        }
    }

    #[test]
    fn the_number_of_a_message_can_be_computed_from_its_generated_id() {
        for salt in [0, 1, u64::MAX, 0x1234_5678_9ABC_DEF0] {
            for seq in [1, 2, 1 << 40, u64::MAX / 2] {
                let id = generated(seq, 99, salt);
                assert_eq!(
                    token_of(&id).map(|token| token.wrapping_sub(salt)),
                    Some(seq)
                );
            }
        }
        assert_eq!(token_of(b"not an id"), None);
        assert_eq!(token_of(&[0xFF; 36]), None);
    }

    #[test]
    fn generated_ids_of_one_millisecond_ascend_in_send_order() {
        let a = generated(41, 5, 1 << 50);
        let b = generated(42, 5, 1 << 50);
        assert!(a < b);
    }
}
