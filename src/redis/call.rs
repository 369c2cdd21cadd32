//! Runs plain commands on keys that hold no queue, and looks at what such keys hold.

use super::{raw, Context, Name, OwnedName};
use dq_queue::effect::{Holds, Outcome};
use smallvec::SmallVec;
use std::ffi::CStr;
use std::os::raw::{c_char, c_int};

/// One byte more than an integer of 64 bits can have in a text, with its sign.
pub const LONGEST_NUMBER: usize = 21;

/// The reply of the server is of a kind that no effect has, or it has refused the command.
pub struct Unexpected(pub String);

impl Context {
    /// Runs a plain command: `name`, the key, and the other words. It is neither replicated nor
    /// written to the log. Handlers of other modules may run.
    ///
    /// Error: the server refuses it.
    pub fn run_plain<W: AsRef<[u8]>>(
        &mut self,
        name: &[u8],
        key: Name<'_>,
        words: &[W],
    ) -> Result<Option<Outcome>, Unexpected> {
        // No command of an effect has a longer name.
        let mut text = [0; 16];
        let room = text.get_mut(..name.len());
        room.ok_or_else(|| Unexpected("a name".into()))?
            .copy_from_slice(name);
        let name = CStr::from_bytes_until_nul(&text).map_err(|_| Unexpected("a name".into()))?;
        let words = words.iter().map(|word| OwnedName::new(word.as_ref()));
        let words: SmallVec<[_; 4]> = words.collect();
        let names = words.iter().map(|word| word.name().as_ptr());
        let mut strings: SmallVec<[_; 4]> = [key.as_ptr()].into_iter().chain(names).collect();
        // SAFETY: the context and the strings are live, the format says that they are an array, and
        // the reply is freed once, after it was read.
        unsafe {
            let Some(call) = raw::RedisModule_Call else {
                return Err(Unexpected("the server has no RedisModule_Call".into()));
            };
            let reply = call(
                self.as_ptr(),
                name.as_ptr(),
                c"vE".as_ptr(),
                strings.as_mut_ptr(),
                strings.len(),
            );
            if reply.is_null() {
                return Err(Unexpected("the server does not know the command".into()));
            }
            let outcome = read(reply);
            api!(RedisModule_FreeCallReply(reply));
            outcome
        }
    }

    /// The type of value that a key holds. The server removes it first if it has expired.
    pub fn look_at(&mut self, name: Name<'_>) -> Holds {
        // SAFETY: the key is open, or null.
        self.with_key(name, |key| unsafe { held(key) })
    }

    /// Whether a key holds this string. Unlike [`Context::number_of`] it leaves the string stored as
    /// it is.
    pub fn has_text(&mut self, name: Name<'_>, text: &[u8]) -> bool {
        // SAFETY: the key is open, or null, which has no length.
        let has_length = self.with_key(name, |key| unsafe {
            held(key) == Holds::String && api!(RedisModule_ValueLength(key)) == text.len()
        });
        has_length
            && self
                .ask(b"GET", name, &[])
                .is_some_and(|found| found == text)
    }

    /// The beginning of the string that a key holds, as long as a number of 64 bits can be; `None`
    /// if it holds none. The server may store a number anew as a text, until the next INCRBY.
    pub fn number_of(&mut self, name: Name<'_>) -> Option<SmallVec<[u8; LONGEST_NUMBER]>> {
        self.with_key(name, |key| {
            // SAFETY: the key is open, or null.
            if unsafe { held(key) } != Holds::String {
                return None;
            }
            let mut len = 0;
            // SAFETY: the key is open and holds a string, whose bytes live until it is closed.
            unsafe {
                let mode = raw::REDISMODULE_READ as c_int;
                let text: *mut c_char = api!(RedisModule_StringDMA(key, &mut len, mode));
                let len = len.min(LONGEST_NUMBER);
                (!text.is_null())
                    .then(|| SmallVec::from_slice(std::slice::from_raw_parts(text.cast(), len)))
            }
        })
    }

    /// The text that a plain command replies; `None` for anything else.
    pub fn ask(&mut self, command: &[u8], key: Name<'_>, words: &[&[u8]]) -> Option<Vec<u8>> {
        match self.run_plain(command, key, words) {
            Ok(Some(Outcome::Text(text))) => Some(text.into_vec()),
            // The stored text may be OK.
            Ok(Some(Outcome::Done)) => Some(b"OK".to_vec()),
            _ => None,
        }
    }

    fn with_key<R>(
        &mut self,
        name: Name<'_>,
        look: impl FnOnce(*mut raw::RedisModuleKey) -> R,
    ) -> R {
        // SAFETY: the context and the name are live, and the key is closed once.
        unsafe {
            let mode = raw::REDISMODULE_READ as c_int;
            let key = api!(RedisModule_OpenKey(self.as_ptr(), name.as_ptr(), mode)).cast();
            let found = look(key);
            if !key.is_null() {
                api!(RedisModule_CloseKey(key));
            }
            found
        }
    }
}

/// The type of value that an open key holds.
///
/// # Safety
/// `key` must be open, or null, which has the type of nothing.
unsafe fn held(key: *mut raw::RedisModuleKey) -> Holds {
    // SAFETY: the caller guarantees it.
    let kind = unsafe { api!(RedisModule_KeyType(key)) } as isize;
    match kind {
        raw::REDISMODULE_KEYTYPE_EMPTY => Holds::Nothing,
        raw::REDISMODULE_KEYTYPE_STRING => Holds::String,
        raw::REDISMODULE_KEYTYPE_LIST => Holds::List,
        raw::REDISMODULE_KEYTYPE_SET => Holds::Set,
        raw::REDISMODULE_KEYTYPE_ZSET => Holds::SortedSet,
        raw::REDISMODULE_KEYTYPE_HASH => Holds::Hash,
        raw::REDISMODULE_KEYTYPE_STREAM => Holds::Stream,
        _ => {
            // SAFETY: the key is open and holds the value of a module.
            let found = unsafe { api!(RedisModule_ModuleTypeGetType(key)) };
            match !found.is_null() && found == super::value::value_type() {
                true => Holds::Queue,
                false => Holds::Other,
            }
        }
    }
}

/// Reads the reply of a plain command; `None` for null.
///
/// # Safety
/// `reply` must be live.
unsafe fn read(reply: *mut raw::RedisModuleCallReply) -> Result<Option<Outcome>, Unexpected> {
    // SAFETY: the caller guarantees it. Texts of the reply live as long as it.
    unsafe {
        let text = || {
            let mut len = 0;
            let text = api!(RedisModule_CallReplyStringPtr(reply, &mut len));
            match text.is_null() {
                true => &[][..],
                false => std::slice::from_raw_parts(text.cast::<u8>(), len),
            }
        };
        match api!(RedisModule_CallReplyType(reply)) as isize {
            raw::REDISMODULE_REPLY_INTEGER => Ok(Some(Outcome::Integer(api!(
                RedisModule_CallReplyInteger(reply)
            )))),
            raw::REDISMODULE_REPLY_STRING if text() == b"OK" => Ok(Some(Outcome::Done)),
            raw::REDISMODULE_REPLY_STRING => Ok(Some(Outcome::Text(text().into()))),
            raw::REDISMODULE_REPLY_NULL => Ok(None),
            _ => Err(Unexpected(String::from_utf8_lossy(text()).into_owned())),
        }
    }
}
