//! Families: one logical queue that is cut into partitions, which are queues of
//! their own and lie on different nodes of a cluster.
//!
//! The family `f` consists of the queues named `f:{tag}`. Its partitions are
//! numbered. The tag of each is chosen so that the slots of the partitions, and with
//! them the partitions on the nodes, lie evenly. All of this is computed from names
//! and numbers alone, so every client and every node comes to the same result.

use crc::{Crc, CRC_16_XMODEM, CRC_32_ISO_HDLC};
use lazy_static::lazy_static;

/// Number of hash slots of a cluster.
pub const SLOTS: u32 = 16_384;

/// How many partitions a family has: a power of two from 1 to [`SLOTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partitions(u32);

impl Partitions {
    /// `None` unless `count` is a power of two from 1 to [`SLOTS`].
    pub fn new(count: u32) -> Option<Partitions> {
        (count.is_power_of_two() && count <= SLOTS).then_some(Partitions(count))
    }

    /// The number of partitions.
    pub fn count(self) -> u32 {
        self.0
    }

    /// The partition of a group, from 0 on.
    pub fn of_group(self, group: &[u8]) -> u32 {
        ((u64::from(crc32(group)) * u64::from(self.0)) >> 32) as u32
    }

    /// The tag of a partition: the smallest integer whose slot lies in the part of
    /// the slots that belongs to the partition. O(slots of the partition).
    pub fn tag(self, partition: u32) -> u32 {
        let size = (SLOTS / self.0) as usize;
        let tags = FIRST_OF_SLOT.chunks(size).nth(partition as usize);
        let smallest = tags.unwrap_or_default().iter().min();
        smallest.copied().unwrap_or_default()
    }

    /// The names of the queues of a family, in the order of its partitions.
    /// O([`SLOTS`]).
    pub fn keys<'f>(self, family: &'f [u8]) -> impl Iterator<Item = Vec<u8>> + 'f {
        (0..self.0).map(move |partition| key(family, self.tag(partition)))
    }
}

lazy_static! {
    /// For each slot the smallest integer whose decimal text lies in it.
    static ref FIRST_OF_SLOT: Vec<u32> = {
        let mut first = vec![u32::MAX; SLOTS as usize];
        let mut missing = SLOTS;
        for n in 0..u32::MAX {
            let slot = slot_of(n.to_string().as_bytes());
            if let Some(of_slot) = first.get_mut(slot as usize).filter(|n| **n == u32::MAX) {
                *of_slot = n;
                missing -= 1;
            }
            if missing == 0 {
                break;
            }
        }
        first
    };
}

/// The name of a queue of a family.
pub fn key(family: &[u8], tag: u32) -> Vec<u8> {
    let mut key = family.to_vec();
    key.extend_from_slice(format!(":{{{tag}}}").as_bytes());
    key
}

/// Whether this can be the name of a family: it has no braces.
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.iter().any(|byte| matches!(byte, b'{' | b'}'))
}

/// The family of the queue of this name, if it has one. Any tag that is not empty
/// counts. O(1) for most names that have none.
pub fn of_key(key: &[u8]) -> Option<&[u8]> {
    let (b'}', inner) = key.split_last()? else {
        return None;
    };
    let brace = inner.iter().position(|byte| *byte == b'{')?;
    let (family, tag) = inner.split_at(brace);
    let family = family.strip_suffix(b":")?;
    let has_tag = tag.len() > 1 && !tag.contains(&b'}');
    (has_tag && is_name(family)).then_some(family)
}

/// The hash slot of a queue of a family.
pub fn slot_of_queue(key: &[u8]) -> u32 {
    let family = of_key(key).map_or(0, <[u8]>::len);
    let tag = key.get(family + 2..key.len().saturating_sub(1));
    slot_of(tag.unwrap_or_default())
}

/// The hash slot of any key: that of its first tag that is not empty, or of the whole key.
pub fn slot_of_key(key: &[u8]) -> u32 {
    let mut parts = key.splitn(2, |byte| *byte == b'{').skip(1);
    let tag = parts.next().and_then(|rest| {
        let end = rest.iter().position(|byte| *byte == b'}')?;
        rest.get(..end)
    });
    slot_of(tag.filter(|tag| !tag.is_empty()).unwrap_or(key))
}

/// The hash slot of a tag: CRC-16 (XMODEM) modulo [`SLOTS`].
pub fn slot_of(tag: &[u8]) -> u32 {
    static CRC: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);
    u32::from(CRC.checksum(tag)) % SLOTS
}

/// The CRC-32 of zlib.
fn crc32(bytes: &[u8]) -> u32 {
    static CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
    CRC.checksum(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions(count: u32) -> Partitions {
        Partitions::new(count).unwrap()
    }

    #[test]
    fn checksums_are_those_of_the_server_and_of_zlib() {
        assert_eq!(slot_of(b"123456789"), 0x31C3 % SLOTS);
        assert_eq!(slot_of(b""), 0);
        assert_eq!(slot_of(b"foo"), 12_182);
        let tagged: [&[u8]; 4] = [b"foo", b"{foo}", b"a{foo}b{c}", b"}{foo}"];
        for key in tagged {
            assert_eq!(slot_of_key(key), 12_182);
        }
        for whole in [&b"{}foo"[..], b"foo{", b"{foo", b""] {
            assert_eq!(slot_of_key(whole), slot_of(whole));
        }
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc32(b"customer-42"), 0x49FD_A815);
    }

    #[test]
    fn the_number_of_partitions_is_a_power_of_two_of_at_most_all_slots() {
        for count in [1, 2, 64, SLOTS] {
            assert_eq!(partitions(count).count(), count);
        }
        for count in [0, 3, SLOTS - 1, SLOTS * 2, u32::MAX] {
            assert_eq!(Partitions::new(count), None);
        }
    }

    #[test]
    fn a_tag_is_the_smallest_integer_in_the_slots_of_its_partition() {
        for count in [1, 2, 16, 256] {
            let size = SLOTS / count;
            for partition in 0..count {
                let tag = partitions(count).tag(partition);
                let is_in = |n: &u32| slot_of(n.to_string().as_bytes()) / size == partition;
                assert_eq!((0..).find(is_in), Some(tag));
            }
        }
        let all: Vec<u32> = (0..SLOTS).map(|n| partitions(SLOTS).tag(n)).collect();
        for (slot, tag) in all.iter().enumerate() {
            assert_eq!(slot_of(tag.to_string().as_bytes()), slot as u32);
        }
    }

    #[test]
    fn when_the_partitions_double_one_half_of_each_is_the_queue_that_it_was() {
        for count in [1, 2, 32, SLOTS / 2] {
            for partition in (0..count).step_by(7) {
                let tag = partitions(count).tag(partition);
                let halves = [2 * partition, 2 * partition + 1];
                let tags = halves.map(|half| partitions(2 * count).tag(half));
                assert!(tags.contains(&tag));
            }
            for group in ["", "a", "b", "customer-42"] {
                let old = partitions(count).of_group(group.as_bytes());
                let new = partitions(2 * count).of_group(group.as_bytes());
                assert_eq!(new / 2, old);
            }
        }
    }

    #[test]
    fn names_of_queues_and_families_belong_together() {
        assert_eq!(key(b"mails", 17), b"mails:{17}");
        let keys: Vec<Vec<u8>> = partitions(2).keys(b"f").collect();
        assert_eq!(
            keys,
            [
                key(b"f", partitions(2).tag(0)),
                key(b"f", partitions(2).tag(1))
            ]
        );
        for (name, family) in [
            ("f:{1}", Some("f")),
            ("a:b:{x{y}", Some("a:b")),
            ("f:{}", None),
            (":{1}", None),
            ("f{1}", None),
            ("f:{1}x", None),
            ("f:{1}}", None),
            ("f}:{1}", None),
            ("f:1}", None),
            ("f", None),
            ("}", None),
            ("", None),
        ] {
            assert_eq!(of_key(name.as_bytes()), family.map(str::as_bytes), "{name}");
        }
        assert_eq!(slot_of_queue(b"f:{foo}"), slot_of(b"foo"));
        assert_eq!(slot_of_queue(b""), 0);
        assert!(is_name(b"f") && !is_name(b"") && !is_name(b"a{") && !is_name(b"}"));
    }
}
