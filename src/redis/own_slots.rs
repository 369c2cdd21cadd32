//! The hash slots that this node serves, according to the cluster, and whether one is on its way.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::rc::Rc;

use dq_queue::family::{slot_of, slot_of_key};

use super::{raw, Context, Name, OwnedName};

/// The line of CLUSTER INFO where this node must not serve its slots.
const DOWN: &[u8] = b"cluster_state:fail";

/// The slots of this node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnSlots {
    /// The first and the last of each range. None while the cluster is down for this node.
    ranges: Vec<(u32, u32)>,
}

impl OwnSlots {
    /// Whether this node serves a slot.
    pub fn contains(&self, slot: u32) -> bool {
        let mut ranges = self.ranges.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&slot))
    }

    /// Reads the slots from the reply of CLUSTER NODES. A slot that is on its way to this node
    /// is not one of them yet.
    fn of_nodes(nodes: &[u8]) -> OwnSlots {
        let text = String::from_utf8_lossy(nodes);
        let is_own = |line: &&str| {
            let flags = line.split(' ').nth(2);
            flags.is_some_and(|flags| flags.split(',').any(|flag| flag == "myself"))
        };
        let own = text.lines().find(is_own).unwrap_or_default();
        let ranges = own.split(' ').skip(8).filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some((first.parse().ok()?, last.parse().ok()?))
        });
        OwnSlots {
            ranges: ranges.collect(),
        }
    }
}

thread_local! {
    /// The unused keys, by their slots.
    static UNUSED_KEYS: RefCell<BTreeMap<u32, Rc<OwnedName>>> = RefCell::default();
}

/// A key of a slot that no client has a reason to use. The first of each slot takes about a millisecond.
fn unused_key(slot: u32) -> Rc<OwnedName> {
    let make = || {
        let mut tags = (0u32..).map(|number| number.to_string());
        let tag = tags.find(|tag| slot_of(tag.as_bytes()) == slot);
        let key = format!("{{{}}}dq.unused", tag.unwrap_or_default());
        Rc::new(OwnedName::new(key.as_bytes()))
    };
    UNUSED_KEYS.with_borrow_mut(|keys| Rc::clone(keys.entry(slot).or_insert_with(make)))
}

impl Context {
    /// Whether the slot of a key is on its way from this node or to it, key by key. The server would
    /// ask the client then to try a command again that names several keys of the slot, one of which
    /// is not here. It is asked in this way because modules learn of no change. O(1).
    pub fn is_on_its_way(&self, name: Name<'_>) -> bool {
        let unused = unused_key(slot_of_key(name.bytes()));
        // SAFETY: the context and the names are live, the format describes the arguments, and the
        // reply is freed once.
        unsafe {
            let Some(call) = raw::RedisModule_Call.filter(|_| self.is_in_cluster()) else {
                return false;
            };
            // Newer servers only check the command, with D, and reply with an error or nothing. With
            // others a reply is no error.
            let of_newer = raw::RedisModule_BlockClientOnKeysWithFlags;
            let only_checks = of_newer.is_some();
            let reply = call(
                self.as_ptr(),
                c"EXISTS".as_ptr(),
                if only_checks { c"ssD" } else { c"ss" }.as_ptr(),
                name.as_ptr(),
                unused.name().as_ptr(),
            );
            let error = std::io::Error::last_os_error();
            let has_reply = !reply.is_null();
            if has_reply {
                api!(RedisModule_FreeCallReply(reply));
            }
            has_reply == only_checks && error.kind() == std::io::ErrorKind::PermissionDenied
        }
    }

    /// The slots of this node; `None` if it is not part of a cluster. It has none while the cluster
    /// is down for it: another node may have them by now. O(nodes).
    pub fn own_slots(&self) -> Option<OwnSlots> {
        if !self.is_in_cluster() {
            return None;
        }
        let is_down = |info: &[u8]| info.windows(DOWN.len()).any(|part| part == DOWN);
        match self.ask_cluster(c"INFO", is_down)? {
            true => Some(OwnSlots::default()),
            false => self.ask_cluster(c"NODES", OwnSlots::of_nodes),
        }
    }

    /// Reads the reply of a subcommand of CLUSTER that replies with text.
    fn ask_cluster<R>(&self, subcommand: &CStr, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        // SAFETY: the context is live, the format describes the arguments, the text lives as long as
        // the reply, and the reply is freed once.
        unsafe {
            let call = raw::RedisModule_Call?;
            let reply = call(
                self.as_ptr(),
                c"CLUSTER".as_ptr(),
                c"c".as_ptr(),
                subcommand.as_ptr(),
            );
            if reply.is_null() {
                return None;
            }
            let mut len = 0;
            let text = api!(RedisModule_CallReplyStringPtr(reply, &mut len));
            let found =
                (!text.is_null()).then(|| read(std::slice::from_raw_parts(text.cast::<u8>(), len)));
            api!(RedisModule_FreeCallReply(reply));
            found
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slots_of_this_node_are_those_of_its_own_line() {
        let nodes = b"07c3 127.0.0.1:30004@31004,host slave e7d1 0 1426238317239 4 connected\n\
            67ed 127.0.0.1:30002@31002,host master - 0 1426238316232 2 connected 5461-10922\n\
            e7d1 127.0.0.1:30001@31001,host myself,master - 0 0 1 connected 0-5460 7000 \
            [93-<-292f] [95->-292f]\n";
        let slots = OwnSlots::of_nodes(nodes);
        assert_eq!(slots.ranges, [(0, 5460), (7000, 7000)]);
        assert!(slots.contains(5460) && slots.contains(7000) && !slots.contains(5461));
        assert_eq!(OwnSlots::of_nodes(b""), OwnSlots::default());
    }
}
