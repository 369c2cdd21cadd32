//! Streams of the server, to which entries are added without a command.
//!
//! Nothing here is replicated: every server that repeats a change adds the same entries itself. So
//! an id never comes from the clock of a server.

mod walk;

use super::{raw, Context, Name, WrongType};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::os::raw::{c_int, c_long};
use std::ptr;

/// A value of an entry.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// A text of a fixed set.
    Known(&'static str),
    /// A text of any bytes.
    Bytes(&'a [u8]),
    /// A number, which is written in decimal.
    Number(u64),
}

thread_local! {
    /// The server's strings of fixed texts, by their addresses. Each is made when it is first used,
    /// and kept: there are some dozens, and an entry needs up to nine. The strings are not dropped
    /// when the thread ends, which is the end of the server.
    static KNOWN: RefCell<ManuallyDrop<Vec<(*const u8, *mut raw::RedisModuleString)>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// The server's string of a fixed text.
fn known(text: &'static str) -> *mut raw::RedisModuleString {
    KNOWN.with_borrow_mut(|known| {
        if let Some((_, string)) = known.iter().find(|(of, _)| *of == text.as_ptr()) {
            return *string;
        }
        let string = string(text.as_bytes());
        known.push((text.as_ptr(), string));
        string
    })
}

/// A new string of the server. It is ours until we free it.
fn string(bytes: &[u8]) -> *mut raw::RedisModuleString {
    // SAFETY: a string needs no context, and the server copies the bytes.
    unsafe {
        api!(RedisModule_CreateString(
            ptr::null_mut(),
            bytes.as_ptr().cast(),
            bytes.len()
        ))
    }
}

/// A new string of the server with a number in decimal.
fn of_number(number: u64) -> *mut raw::RedisModuleString {
    // SAFETY: a string needs no context.
    unsafe {
        api!(RedisModule_CreateStringFromLongLong(
            ptr::null_mut(),
            i64::try_from(number).unwrap_or(i64::MAX)
        ))
    }
}

/// The id of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    ms: u64,
    seq: u64,
}

impl Id {
    /// Less than any entry has.
    const ZERO: Id = Id { ms: 0, seq: 0 };

    /// The greatest one: a stream that has given it takes no more entries.
    const MAX: Id = Id {
        ms: u64::MAX,
        seq: u64::MAX,
    };

    /// The first id at `ms` that is greater than this one, the last one of a stream.
    fn next(self, ms: u64) -> Id {
        let first = Id {
            ms,
            // A stream may not have the id 0-0.
            seq: u64::from(ms == 0),
        };
        match self.seq.checked_add(1) {
            Some(seq) => first.max(Id { ms: self.ms, seq }),
            None => first.max(Id {
                ms: self.ms.saturating_add(1),
                seq: 0,
            }),
        }
    }

    /// Reads the text of an id: `ms-seq`.
    fn read(text: &[u8]) -> Option<Id> {
        let text = std::str::from_utf8(text).ok()?;
        let (ms, seq) = text.split_once('-')?;
        Some(Id {
            ms: ms.parse().ok()?,
            seq: seq.parse().ok()?,
        })
    }
}

/// A stream that is open for new entries. It is closed when dropped.
pub struct Stream<'a> {
    ctx: &'a Context,
    name: Name<'a>,
    key: *mut raw::RedisModuleKey,
    last: Id,
    /// Whether `last` comes from the server, and is not only the id of the last remaining entry.
    is_last_sure: bool,
}

impl Context {
    /// Opens a key to add to the stream in it, or to make one. Error: it holds another type.
    pub fn open_stream<'a>(&'a mut self, name: Name<'a>) -> Result<Stream<'a>, WrongType> {
        self.open_stream_to(name, READ_WRITE)
    }

    /// Opens a key to look at the stream in it, or at the lack of one. Error: it holds another
    /// type.
    pub fn look_at_stream<'a>(&'a mut self, name: Name<'a>) -> Result<Stream<'a>, WrongType> {
        self.open_stream_to(name, raw::REDISMODULE_READ as c_int)
    }

    fn open_stream_to<'a>(
        &'a mut self,
        name: Name<'a>,
        mode: c_int,
    ) -> Result<Stream<'a>, WrongType> {
        let mut stream = Stream {
            ctx: self,
            name,
            key: ptr::null_mut(),
            last: Id::ZERO,
            is_last_sure: false,
        };
        stream.open(mode);
        match stream.holds_stream_or_nothing() {
            true => {
                stream.last = stream.last_entry().unwrap_or(Id::ZERO);
                Ok(stream)
            }
            false => Err(WrongType),
        }
    }
}

const READ_WRITE: c_int = (raw::REDISMODULE_READ | raw::REDISMODULE_WRITE) as c_int;
const OK: c_int = raw::REDISMODULE_OK as c_int;
const EMPTY: c_int = raw::REDISMODULE_KEYTYPE_EMPTY as c_int;
const STREAM: c_int = raw::REDISMODULE_KEYTYPE_STREAM as c_int;

impl Stream<'_> {
    fn open(&mut self, mode: c_int) {
        self.close();
        // SAFETY: the context and the name are live.
        self.key = unsafe {
            api!(RedisModule_OpenKey(
                self.ctx.as_ptr(),
                self.name.as_ptr(),
                mode
            ))
        }
        .cast();
    }

    fn close(&mut self) {
        let key = std::mem::replace(&mut self.key, ptr::null_mut());
        if !key.is_null() {
            // SAFETY: opened once, closed once.
            unsafe { api!(RedisModule_CloseKey(key)) };
        }
    }

    /// The id of the last entry, or of one that was given and deleted. Less than any other if there
    /// is none.
    pub fn last(&self) -> Id {
        self.last
    }

    /// Whether the stream has given its greatest id, and takes no more entries. Nothing can be
    /// added after this question.
    pub fn ends(mut self) -> bool {
        self.last == Id::MAX || self.kind() == STREAM && self.last_given() == Some(Id::MAX)
    }

    /// The greatest id that the stream has given, as its milliseconds and its number. Nothing can
    /// be added after this question.
    pub fn greatest(mut self) -> (u64, u64) {
        let id = match self.kind() == STREAM {
            true => self.last_given().unwrap_or(self.last),
            false => self.last,
        };
        (id.ms, id.seq)
    }

    fn holds_stream_or_nothing(&self) -> bool {
        matches!(self.kind(), STREAM | EMPTY)
    }

    /// The value that the key holds.
    fn kind(&self) -> c_int {
        match self.key.is_null() {
            true => EMPTY,
            // SAFETY: the key is open.
            false => unsafe { api!(RedisModule_KeyType(self.key)) },
        }
    }

    /// The id of the last entry that is there.
    fn last_entry(&self) -> Option<Id> {
        let reverse = raw::REDISMODULE_STREAM_ITERATOR_REVERSE as c_int;
        let mut id = raw::RedisModuleStreamID { ms: 0, seq: 0 };
        let mut fields: c_long = 0;
        // SAFETY: the key is open, and no iterator of it is. A key that holds no stream gets none.
        unsafe {
            let (from, to) = (ptr::null_mut(), ptr::null_mut());
            if api!(RedisModule_StreamIteratorStart(self.key, reverse, from, to)) != OK {
                return None;
            }
            let found = api!(RedisModule_StreamIteratorNextID(
                self.key,
                &mut id,
                &mut fields
            )) == OK;
            api!(RedisModule_StreamIteratorStop(self.key));
            found.then_some(Id {
                ms: id.ms,
                seq: id.seq,
            })
        }
    }

    /// The last id that the stream has given, also if that entry was deleted. The key is closed
    /// after it, because no command may run on a key that is open for a change.
    #[cold]
    fn last_given(&mut self) -> Option<Id> {
        self.close();
        // SAFETY: the context and the name are live, the format describes the arguments, and the
        // reply is freed once, after its parts were read.
        unsafe {
            let call = raw::RedisModule_Call?;
            let reply = call(
                self.ctx.as_ptr(),
                c"XINFO".as_ptr(),
                c"cs".as_ptr(),
                c"STREAM".as_ptr(),
                self.name.as_ptr(),
            );
            if reply.is_null() {
                return None;
            }
            let count = api!(RedisModule_CallReplyLength(reply));
            let text = |at: usize| {
                let part = api!(RedisModule_CallReplyArrayElement(reply, at));
                if part.is_null() {
                    return None;
                }
                let mut len = 0;
                let text = api!(RedisModule_CallReplyStringPtr(part, &mut len));
                (!text.is_null()).then(|| std::slice::from_raw_parts(text.cast::<u8>(), len))
            };
            let mut names = (0..count.saturating_sub(1)).step_by(2);
            let at = names.find(|at| text(*at) == Some(b"last-generated-id"));
            let last = at.and_then(|at| Id::read(text(at + 1)?));
            api!(RedisModule_FreeCallReply(reply));
            last
        }
    }

    /// Adds an entry whose id begins with `ms`, or with a later time where the stream is ahead.
    /// Returns whether it could be added: a stream may have given out its last id.
    pub fn add(&mut self, ms: u64, fields: &[(&'static str, Value<'_>)]) -> bool {
        if self.try_add(ms, fields) {
            return true;
        }
        if std::mem::replace(&mut self.is_last_sure, true) {
            return false;
        }
        // Entries behind the last remaining one were deleted.
        self.last = self.last_given().unwrap_or(self.last);
        self.open(READ_WRITE);
        self.try_add(ms, fields)
    }

    fn try_add(&mut self, ms: u64, fields: &[(&'static str, Value<'_>)]) -> bool {
        let id = self.last.next(ms);
        let mut given = raw::RedisModuleStreamID {
            ms: id.ms,
            seq: id.seq,
        };
        let mut words = SmallVec::<[_; 18]>::new();
        let mut made = SmallVec::<[_; 9]>::new();
        for (name, value) in fields {
            let value = match *value {
                Value::Known(text) => {
                    words.extend([known(name), known(text)]);
                    continue;
                }
                Value::Bytes(bytes) => string(bytes),
                Value::Number(number) => of_number(number),
            };
            made.push(value);
            words.extend([known(name), value]);
        }
        // SAFETY: the key is open for writing; the server copies the strings, and those that were
        // made for this entry are freed once.
        let added = unsafe {
            let added = api!(RedisModule_StreamAdd(
                self.key,
                0,
                &mut given,
                words.as_mut_ptr(),
                fields.len() as i64
            ));
            for word in made {
                api!(RedisModule_FreeString(ptr::null_mut(), word));
            }
            added == OK
        };
        if added {
            self.last = id;
        }
        added
    }

    /// The number of entries. O(1).
    pub fn len(&self) -> u64 {
        // SAFETY: the key is open. The length of an empty key is 0.
        unsafe { api!(RedisModule_ValueLength(self.key)) as u64 }
    }

    /// Removes the oldest entries until `len` are left. Returns how many it removed. The server
    /// walks twice over what was removed of the oldest node before, which may be a hundred entries.
    pub fn trim(&mut self, len: u64) -> u64 {
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        // SAFETY: the key is open for writing.
        let removed = unsafe { api!(RedisModule_StreamTrimByLength(self.key, 0, len)) };
        u64::try_from(removed).unwrap_or(0)
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        self.close();
    }
}
