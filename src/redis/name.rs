//! Names of keys, as strings of the server.

use super::raw;
use std::marker::PhantomData;
use std::ptr;

/// The name of a key: an argument of the running call, or an [`OwnedName`].
#[derive(Clone, Copy)]
pub struct Name<'a> {
    string: *mut raw::RedisModuleString,
    life: PhantomData<&'a [u8]>,
}

impl<'a> Name<'a> {
    /// # Safety
    /// `string` must live, unchanged, for `'a`.
    pub(super) unsafe fn new(string: *mut raw::RedisModuleString) -> Self {
        Name {
            string,
            life: PhantomData,
        }
    }

    pub(super) fn as_ptr(self) -> *mut raw::RedisModuleString {
        self.string
    }

    /// Whether this is the same argument of the call, and not only an equal one.
    pub fn is(self, other: Name<'_>) -> bool {
        self.string == other.string
    }

    /// The name's bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        // SAFETY: the string lives for 'a (see new).
        unsafe { string_bytes(self.string) }
    }
}

/// A key's name that the module owns, for keys that are not arguments of the running command.
pub struct OwnedName {
    string: *mut raw::RedisModuleString,
}

impl OwnedName {
    /// Makes a name of these bytes. Costs an allocation.
    pub fn new(bytes: &[u8]) -> Self {
        // SAFETY: a string without a context is ours until we free it.
        let string = unsafe {
            api!(RedisModule_CreateString(
                ptr::null_mut(),
                bytes.as_ptr().cast(),
                bytes.len()
            ))
        };
        OwnedName { string }
    }

    /// The name, borrowed.
    pub fn name(&self) -> Name<'_> {
        // SAFETY: the string lives as long as self.
        unsafe { Name::new(self.string) }
    }
}

impl Drop for OwnedName {
    fn drop(&mut self) {
        // SAFETY: made by us without a context, freed once.
        unsafe { api!(RedisModule_FreeString(ptr::null_mut(), self.string)) }
    }
}

/// The bytes of a server string.
///
/// # Safety
/// `string` must live, unchanged, for `'a`.
#[inline]
pub(super) unsafe fn string_bytes<'a>(string: *const raw::RedisModuleString) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: the caller guarantees that the string lives; the server returns its bytes.
    unsafe {
        let bytes = api!(RedisModule_StringPtrLen(string, &mut len));
        std::slice::from_raw_parts(bytes.cast(), len)
    }
}
