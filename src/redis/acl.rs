//! The rights of users, for commands that find their keys themselves.

use super::name::string_bytes;
use super::spec::Access;
use super::{docs, raw, Context, Name, OwnedName};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hasher};
use std::os::raw::c_int;
use std::ptr;
use std::rc::Rc;

/// The access flags without those that say whether a key is read or written: rights are checked
/// against the access of a command to the value.
const RIGHTS: u32 = raw::REDISMODULE_CMD_KEY_ACCESS
    | raw::REDISMODULE_CMD_KEY_INSERT
    | raw::REDISMODULE_CMD_KEY_DELETE
    | raw::REDISMODULE_CMD_KEY_UPDATE;

thread_local! {
    /// The last user whose rights were checked. Most calls are those of one user.
    static LAST: RefCell<Option<(Rc<[u8]>, OwnedName)>> = const { RefCell::new(None) };
}

/// Calls `use_it` with the name of a user in both forms.
fn with_user<R>(user: &[u8], use_it: impl FnOnce(&Rc<[u8]>, &OwnedName) -> R) -> R {
    LAST.with_borrow_mut(|last| {
        let last = match last.take() {
            Some(same) if *same.0 == *user => last.insert(same),
            _ => last.insert((Rc::from(user), OwnedName::new(user))),
        };
        use_it(&last.0, &last.1)
    })
}

impl Context {
    /// The name of the user whose call this is.
    pub fn user_name(&self) -> Rc<[u8]> {
        // SAFETY: the context is live, and the string is freed once.
        unsafe {
            let name = api!(RedisModule_GetCurrentUserName(self.as_ptr()));
            if name.is_null() {
                return Rc::from(&b"default"[..]);
            }
            let user = with_user(string_bytes(name), |user, _| Rc::clone(user));
            api!(RedisModule_FreeString(self.as_ptr(), name));
            user
        }
    }

    /// Passes the reply of ACL GETUSER to `read` of ACL GETUSER. `None` if the server gives none.
    pub(super) fn with_rules<R>(
        &self,
        user: &[u8],
        read: impl FnOnce(*mut raw::RedisModuleCallReply) -> R,
    ) -> Option<R> {
        // SAFETY: the context is live, the format describes the arguments, and the reply is freed
        // once.
        unsafe {
            let call = raw::RedisModule_Call?;
            let reply = call(
                self.as_ptr(),
                c"ACL".as_ptr(),
                c"cb".as_ptr(),
                c"GETUSER".as_ptr(),
                user.as_ptr(),
                user.len(),
            );
            if reply.is_null() {
                return None;
            }
            let result = read(reply);
            api!(RedisModule_FreeCallReply(reply));
            Some(result)
        }
    }

    /// A number that changes when the rights of a user change. O(rules of the user).
    pub fn rights_of(&self, user: &[u8]) -> u64 {
        let hash = self.with_rules(user, |reply| {
            let mut hasher = DefaultHasher::new();
            let mut len = 0;
            // SAFETY: the reply lives during the call, and its text as long as it.
            unsafe {
                let text = api!(RedisModule_CallReplyProto(reply, &mut len));
                if !text.is_null() {
                    hasher.write(std::slice::from_raw_parts(text.cast::<u8>(), len));
                }
            }
            hasher.finish()
        });
        hash.unwrap_or(0)
    }
}

/// Whether a user may access a key in this way, by any of its selectors. Nobody may if there is no
/// user of this name.
pub fn may_access(user: &[u8], key: Name<'_>, access: Access) -> bool {
    // SAFETY: the user is live during the call.
    with_module_user(user, |user| unsafe { has_access(user, key, access) })
}

/// Whether a user of the server has access to a key.
///
/// # Safety
/// `user` must be live.
pub(super) unsafe fn has_access(
    user: *mut raw::RedisModuleUser,
    key: Name<'_>,
    access: Access,
) -> bool {
    let flags = (docs::key_flags(access) & RIGHTS) as c_int;
    // SAFETY: the name is live, and the caller guarantees that the user is.
    let checked = unsafe {
        api!(RedisModule_ACLCheckKeyPermissions(
            user,
            key.as_ptr(),
            flags
        ))
    };
    checked == raw::REDISMODULE_OK as c_int
}

/// Whether a user may make the call of these words, the name of the command first: one selector
/// must allow the command and all its keys, as when the call is made. Nobody may if there is no
/// user of this name.
pub fn may_call(user: &[u8], call: &[Name<'_>]) -> bool {
    // SAFETY: the user is live during the call.
    with_module_user(user, |user| unsafe { has_call(user, call) })
}

/// Whether a user of the server may make a call.
///
/// # Safety
/// `user` must be live.
pub(super) unsafe fn has_call(user: *mut raw::RedisModuleUser, call: &[Name<'_>]) -> bool {
    let mut words: SmallVec<[_; 4]> = call.iter().map(|word| word.as_ptr()).collect();
    // SAFETY: the words are live, and the caller guarantees that the user is.
    let checked = unsafe {
        api!(RedisModule_ACLCheckCommandPermissions(
            user,
            words.as_mut_ptr(),
            words.len() as c_int
        ))
    };
    checked == raw::REDISMODULE_OK as c_int
}

/// The user of clients that have not logged in.
pub const DEFAULT_USER: &[u8] = b"default";

thread_local! {
    /// The server's handle of the user `default`. That user is never freed: ACL LOAD copies new
    /// rules into it (acl.c, ACLLoadFromFile).
    static DEFAULT: Cell<*mut raw::RedisModuleUser> = const { Cell::new(ptr::null_mut()) };
}

/// Calls `check` with the server's handle of a user. False if there is no user of this name.
fn with_module_user(user: &[u8], check: impl FnOnce(*mut raw::RedisModuleUser) -> bool) -> bool {
    if user == DEFAULT_USER {
        if DEFAULT.get().is_null() {
            DEFAULT.set(module_user(user));
        }
        return !DEFAULT.get().is_null() && check(DEFAULT.get());
    }
    let user = module_user(user);
    if user.is_null() {
        return false;
    }
    let checked = check(user);
    // SAFETY: made above, freed once.
    unsafe { api!(RedisModule_FreeModuleUser(user)) };
    checked
}

fn module_user(user: &[u8]) -> *mut raw::RedisModuleUser {
    with_user(user, |_, name| {
        // SAFETY: the name is live.
        unsafe { api!(RedisModule_GetModuleUserFromUserName(name.name().as_ptr())) }
    })
}
