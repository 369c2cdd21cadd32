//! Looks at the entries of a stream.

use super::{Id, Stream, OK};
use crate::redis::name::string_bytes;
use crate::redis::raw;
use smallvec::SmallVec;
use std::os::raw::{c_int, c_long};
use std::ptr;

/// The most fields of an entry that are looked at.
const LOOKED_AT: usize = 3;

impl Stream<'_> {
    /// The last of the entries, in their order, of which `is_ours` holds without a gap, and whether
    /// no other follows. `is_ours` gets the first fields of an entry with their values. It is known
    /// to hold up to `from`, if there is that entry. O(entries).
    pub fn all_ours(
        &self,
        from: Option<Id>,
        is_ours: impl Fn(&[(&[u8], &[u8])]) -> bool,
    ) -> (Id, bool) {
        let from = from.unwrap_or(Id::ZERO);
        let mut last = Id::ZERO;
        let mut walk = |from: Id| {
            let mut first = true;
            let found = self.walk(from, false, |id, fields| {
                let goes_on = match std::mem::take(&mut first) && from != Id::ZERO {
                    true => id == from,
                    false => is_ours(fields),
                };
                if goes_on {
                    last = id;
                }
                goes_on
            });
            (last, found)
        };
        match walk(from) {
            (Id::ZERO, _) if from != Id::ZERO => walk(Id::ZERO),
            found => found,
        }
    }

    /// Whether there is no entry, or `is_ours` holds of the last one.
    pub fn is_last_ours(&self, is_ours: impl Fn(&[(&[u8], &[u8])]) -> bool) -> bool {
        let mut is_last_ours = true;
        self.walk(Id::ZERO, true, |_, fields| {
            is_last_ours = is_ours(fields);
            false
        });
        is_last_ours
    }

    /// Calls `each` with the entries from `from` on, or from the end backwards, until it returns
    /// false. Returns whether it never did.
    fn walk(
        &self,
        from: Id,
        backwards: bool,
        mut each: impl FnMut(Id, &[(&[u8], &[u8])]) -> bool,
    ) -> bool {
        let flags = match backwards {
            true => raw::REDISMODULE_STREAM_ITERATOR_REVERSE as c_int,
            false => 0,
        };
        let mut start = raw::RedisModuleStreamID {
            ms: from.ms,
            seq: from.seq,
        };
        let start: *mut _ = match backwards {
            true => ptr::null_mut(),
            false => &mut start,
        };
        // SAFETY: the key is open, and no iterator of it is. A key that holds no stream gets none.
        // The strings of the fields are freed once, after their use.
        unsafe {
            if api!(RedisModule_StreamIteratorStart(
                self.key,
                flags,
                start,
                ptr::null_mut()
            )) != OK
            {
                return true;
            }
            let mut id = raw::RedisModuleStreamID { ms: 0, seq: 0 };
            let mut count: c_long = 0;
            let mut goes_on = true;
            while goes_on
                && api!(RedisModule_StreamIteratorNextID(
                    self.key, &mut id, &mut count
                )) == OK
            {
                let mut strings = SmallVec::<[_; LOOKED_AT]>::new();
                for _ in 0..count.min(LOOKED_AT as c_long) {
                    let (mut field, mut value) = (ptr::null_mut(), ptr::null_mut());
                    if api!(RedisModule_StreamIteratorNextField(
                        self.key, &mut field, &mut value
                    )) == OK
                    {
                        strings.push((field, value));
                    }
                }
                // The server finds the next entry only behind the last field.
                while api!(RedisModule_StreamIteratorNextField(
                    self.key,
                    ptr::null_mut(),
                    ptr::null_mut()
                )) == OK
                {}
                let fields = strings.iter();
                let fields =
                    fields.map(|(field, value)| (string_bytes(*field), string_bytes(*value)));
                let fields = fields.collect::<SmallVec<[_; LOOKED_AT]>>();
                let (ms, seq) = (id.ms, id.seq);
                goes_on = each(Id { ms, seq }, &fields);
                for (field, value) in strings {
                    api!(RedisModule_FreeString(ptr::null_mut(), field));
                    api!(RedisModule_FreeString(ptr::null_mut(), value));
                }
            }
            api!(RedisModule_StreamIteratorStop(self.key));
            goes_on
        }
    }
}
