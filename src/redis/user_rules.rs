//! The rules of a user, as shown by ACL GETUSER: whether the user is enabled, and the rights
//! of each selector. The module API tells neither.

use super::{acl, raw, Context, Name, OwnedName};
use crate::redis::spec::Access;
use std::ffi::CString;
use std::marker::PhantomData;

/// The rules of a user.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UserRules {
    /// Whether clients may log in as this user: `on`, not `off`.
    pub is_enabled: bool,
    /// The rights of each selector, that of the user itself first.
    selectors: Vec<Selector>,
}

/// The rights of one selector, as words of ACL SETUSER.
#[derive(Debug, Default, PartialEq, Eq)]
struct Selector {
    commands: Vec<u8>,
    keys: Vec<u8>,
}

/// Rights on keys that do not belong to any user of the server.
pub struct KeyRights(*mut raw::RedisModuleUser);

impl Context {
    /// The names of all users of the server. O(users).
    pub fn users(&self) -> Vec<Vec<u8>> {
        // SAFETY: the context is live, the format describes the argument, the parts of the reply live
        // as long as it, and it is freed once.
        unsafe {
            let Some(call) = raw::RedisModule_Call else {
                return Vec::new();
            };
            let reply = call(
                self.as_ptr(),
                c"ACL".as_ptr(),
                c"c".as_ptr(),
                c"USERS".as_ptr(),
            );
            if reply.is_null() {
                return Vec::new();
            }
            let users = Part(reply, PhantomData).elements();
            let users = users.iter().map(|user| user.text().to_vec()).collect();
            api!(RedisModule_FreeCallReply(reply));
            users
        }
    }

    /// The rules of a user. `None` if there is no user of this name. O(rules of the user).
    pub fn rules_of(&self, user: &[u8]) -> Option<UserRules> {
        // The parts of a reply live as long as the reply.
        self.with_rules(user, |reply| read(Part(reply, PhantomData)))
            .flatten()
    }
}

/// A part of a reply that lives for `'a`.
#[derive(Clone, Copy)]
struct Part<'a>(*mut raw::RedisModuleCallReply, PhantomData<&'a ()>);

impl<'a> Part<'a> {
    /// The elements of the part, or none if it is not an array.
    fn elements(self) -> Vec<Part<'a>> {
        // SAFETY: the reply lives for 'a, and its elements as long as it.
        unsafe {
            if api!(RedisModule_CallReplyType(self.0)) != raw::REDISMODULE_REPLY_ARRAY as i32 {
                return Vec::new();
            }
            let len = api!(RedisModule_CallReplyLength(self.0));
            let element = |index| api!(RedisModule_CallReplyArrayElement(self.0, index));
            (0..len)
                .map(|index| Part(element(index), PhantomData))
                .collect()
        }
    }

    /// The text of the part, or an empty one if it has none.
    fn text(self) -> &'a [u8] {
        let mut len = 0;
        // SAFETY: the reply lives for 'a, and its text as long as it.
        unsafe {
            let text = api!(RedisModule_CallReplyStringPtr(self.0, &mut len));
            match text.is_null() {
                true => &[],
                false => std::slice::from_raw_parts(text.cast::<u8>(), len),
            }
        }
    }
}

/// Reads the reply of ACL GETUSER.
fn read(reply: Part<'_>) -> Option<UserRules> {
    let fields = reply.elements();
    if fields.is_empty() {
        return None;
    }
    let mut rules = UserRules {
        is_enabled: false,
        selectors: vec![selector(&fields)],
    };
    for pair in fields.chunks_exact(2) {
        let &[name, value] = pair else { continue };
        match name.text() {
            b"flags" => {
                let flags = value.elements();
                rules.is_enabled = flags.iter().any(|flag| flag.text() == b"on");
            }
            b"selectors" => {
                let more = value.elements().into_iter();
                let more = more.map(|one| selector(&one.elements()));
                rules.selectors.extend(more);
            }
            _ => {}
        }
    }
    Some(rules)
}

/// Reads `commands` and `keys` of a list of fields and their values.
fn selector(fields: &[Part<'_>]) -> Selector {
    let mut selector = Selector::default();
    for pair in fields.chunks_exact(2) {
        let &[name, value] = pair else { continue };
        match name.text() {
            b"commands" => selector.commands = value.text().to_vec(),
            b"keys" => selector.keys = value.text().to_vec(),
            _ => {}
        }
    }
    selector
}

impl UserRules {
    /// Whether a selector allows one of these commands, of so many words, and no selector that does
    /// allows writing to every key.
    pub fn is_limited_to_keys(&self, commands: &[(OwnedName, usize)]) -> bool {
        let allows = |selector: &&Selector| {
            let rights = KeyRights::none();
            rights.add(&selector.commands);
            rights.add(b"~*");
            commands.iter().any(|(name, words)| {
                let call = vec![name.name(); *words];
                // SAFETY: the user lives as long as `rights`.
                unsafe { acl::has_call(rights.0, &call) }
            })
        };
        let all: [&[u8]; 4] = [b"~*", b"allkeys", b"%RW~*", b"%W~*"];
        let is_of_all = |selector: &Selector| {
            let mut words = selector.keys.split(|byte| *byte == b' ');
            words.any(|word| all.contains(&word))
        };
        let mut may: Vec<_> = self.selectors.iter().filter(allows).collect();
        let count = may.len();
        may.retain(|selector| is_of_all(selector));
        count > 0 && may.is_empty()
    }

    /// The rights on keys of the selectors that allow a command with one more word.
    pub fn keys_with(&self, command: Name<'_>) -> KeyRights {
        let keys = KeyRights::none();
        for selector in &self.selectors {
            let commands = KeyRights::none();
            commands.add(&selector.commands);
            commands.add(b"~*");
            // Redis 8.6 says no to a call with too few words. The value of the second word does not
            // matter. SAFETY: the user lives as long as `commands`.
            if unsafe { acl::has_call(commands.0, &[command, command]) } {
                keys.add(&selector.keys);
            }
        }
        keys
    }
}

impl KeyRights {
    fn none() -> KeyRights {
        // SAFETY: the name is copied.
        KeyRights(unsafe { api!(RedisModule_CreateModuleUser(c"dq".as_ptr())) })
    }

    /// Adds words of ACL SETUSER.
    fn add(&self, words: &[u8]) {
        // A word has neither spaces nor zero bytes (acl.c, ACLStringHasSpaces).
        for word in words.split(|byte| *byte == b' ') {
            if let Ok(word) = CString::new(word) {
                // SAFETY: the user lives as long as self, and the word is read only.
                unsafe { api!(RedisModule_SetModuleUserACL(self.0, word.as_ptr())) };
            }
        }
    }

    /// Whether the rights allow this access to a key.
    pub fn may_access(&self, key: Name<'_>, access: Access) -> bool {
        // SAFETY: the user lives as long as self.
        !self.0.is_null() && unsafe { acl::has_access(self.0, key, access) }
    }
}

impl Drop for KeyRights {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: made by `none`, freed once.
            unsafe { api!(RedisModule_FreeModuleUser(self.0)) };
        }
    }
}
