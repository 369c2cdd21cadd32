//! The rights of users at the moment at which something is given to them: to clients that wait, and
//! to commands that find their keys themselves.
//!
//! The server checks the rights of a call when the call is made. A client that waits may have lost
//! them since, so they are checked again when it is about to be served.

use std::cell::RefCell;
use std::rc::Rc;

use crate::redis::acl::{may_access, may_call, DEFAULT_USER};
use crate::redis::spec::Access;
use crate::redis::user_rules::KeyRights;
use crate::redis::{clock, Context, Name, OwnedName};

/// The reply to a client that has lost its rights while it waited.
pub const WITHDRAWN: &str = "NOPERM the user has lost the rights for this call while it waited";

/// The call in which a client waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `DQ.FETCH key`
    Fetch,
    /// `DQ.MFETCH 1 key`
    MultiFetch,
    /// `DQ.NFETCH family`
    FamilyFetch,
    /// `DQ.WAIT key`
    Wait,
}

/// The access of a command that finds its keys itself to each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyCall {
    /// DQ.NFETCH takes messages like DQ.FETCH of the key.
    Fetch,
    /// DQ.NINFO counts like DQ.INFO of the key.
    Info,
}

/// The names of commands as strings of the server, made when they are first asked for.
struct Names {
    fetch: OwnedName,
    multi_fetch: OwnedName,
    family_fetch: OwnedName,
    wait: OwnedName,
    info: OwnedName,
    family_info: OwnedName,
    one: OwnedName,
}

/// The known facts about a user.
struct Known {
    user: Rc<[u8]>,
    /// Whether it is enabled, and when that was read, in ms of the monotonic clock. `None` if
    /// something may have changed since.
    is_enabled: Option<(bool, u64)>,
    /// The keys that selectors allow together with each of [`FamilyCall`], and when these rights
    /// were read.
    keys: [Option<(KeyRights, u64)>; 2],
    /// Whether it may apply log entries of any key, and when that was read.
    applies: Option<(bool, u64)>,
}

/// The commands that apply log entries.
const APPLYING: [&[u8]; 2] = [b"DQ.OP", b"DQ.OPS"];

/// Rules of users that may be some time old are read again after this time, in ms.
const RULES_MS: u64 = 100;

/// Maximum number of users that are remembered.
const MOST_USERS: usize = 64;

thread_local! {
    static NAMES: Names = Names {
        fetch: OwnedName::new(b"DQ.FETCH"),
        multi_fetch: OwnedName::new(b"DQ.MFETCH"),
        family_fetch: OwnedName::new(b"DQ.NFETCH"),
        wait: OwnedName::new(b"DQ.WAIT"),
        info: OwnedName::new(b"DQ.INFO"),
        family_info: OwnedName::new(b"DQ.NINFO"),
        one: OwnedName::new(b"1"),
    };
    static KNOWN: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
}

/// Whether a user may make this call now, for a key or, for DQ.NFETCH, a family. O(rules of the
/// user), and O(1) for one that may do everything.
pub fn may_wait(user: &[u8], call: Call, of: Name<'_>) -> bool {
    NAMES.with(|names| {
        let [name, one] = match call {
            Call::Fetch => [&names.fetch, &names.one],
            Call::MultiFetch => [&names.multi_fetch, &names.one],
            Call::FamilyFetch => [&names.family_fetch, &names.one],
            Call::Wait => [&names.wait, &names.one],
        };
        // Redis 8.6 says no to a call with fewer words than the command needs.
        match call {
            Call::MultiFetch => may_call(user, &[name.name(), one.name(), of]),
            Call::Wait => may_call(user, &[name.name(), of, one.name(), one.name()]),
            Call::Fetch | Call::FamilyFetch => may_call(user, &[name.name(), of]),
        }
    })
}

/// Whether a user is enabled. After [`commands_may_have_run`] the rules of the user are read anew, but
/// those of `default` only now and then, because nearly all clients are that user.
pub fn is_enabled(ctx: &Context, user: &[u8]) -> bool {
    let now = now_ms();
    let known = with_known(user, |known| {
        let (is_enabled, read_at) = known.is_enabled?;
        (user != DEFAULT_USER || read_at + RULES_MS > now).then_some(is_enabled)
    });
    known.flatten().unwrap_or_else(|| {
        let rules = ctx.rules_of(user);
        let is_enabled = rules.is_some_and(|rules| rules.is_enabled);
        with_known(user, |known| known.is_enabled = Some((is_enabled, now)));
        is_enabled
    })
}

/// The rules of users may be others now.
pub fn commands_may_have_run() {
    KNOWN.with_borrow_mut(|known| {
        for known in known
            .iter_mut()
            .filter(|known| *known.user != *DEFAULT_USER)
        {
            known.is_enabled = None;
        }
    });
}

/// Whether a command that finds queues itself may tell the user of this call about a message with this
/// id in the queue of a key: if one selector allows that command for the key, or DQ.GET.
pub fn may_see(ctx: &Context, command: &str, key: Name<'_>, id: Name<'_>) -> bool {
    let user = ctx.user_name();
    let may = |command: &str| {
        let command = OwnedName::new(command.as_bytes());
        may_call(&user, &[command.name(), key, id])
    };
    may(command) || may("DQ.GET")
}

/// Whether the user of this call may write to every key by log entries, which may name any key
/// beside those of the command. It may be some time old.
pub fn may_apply_entries(ctx: &Context) -> bool {
    let (user, now) = (ctx.user_name(), now_ms());
    let known = with_known(&user, |known| {
        let (applies, read_at) = known.applies?;
        (read_at + RULES_MS > now).then_some(applies)
    });
    known.flatten().unwrap_or_else(|| {
        let calls = APPLYING.map(|name| (OwnedName::new(name), 3));
        let rules = ctx.rules_of(&user);
        let applies = rules.is_some_and(|rules| !rules.is_limited_to_keys(&calls));
        with_known(&user, |known| known.applies = Some((applies, now)));
        applies
    })
}

/// Whether the user of this call may remove a schedule. The same right is needed to pause one.
pub fn may_unschedule(ctx: &Context, key: Name<'_>, name: Name<'_>) -> bool {
    let command = OwnedName::new(b"DQ.UNSCHEDULE");
    may_call(&ctx.user_name(), &[command.name(), key, name])
}

/// Whether a command that finds its keys itself may give a user the content of this key: if the
/// command that names the key may, or if one selector allows both the command and the key.
pub fn may_have(ctx: &Context, user: &[u8], what: FamilyCall, key: Name<'_>) -> bool {
    let access = match what {
        FamilyCall::Fetch => Access::ReadUpdate,
        FamilyCall::Info => Access::Read,
    };
    let of_key = NAMES.with(|names| {
        let name = match what {
            FamilyCall::Fetch => &names.fetch,
            FamilyCall::Info => &names.info,
        };
        may_call(user, &[name.name(), key])
    });
    // Without that, the server only reports whether any selector allows the key, for whatever
    // command.
    of_key || may_access(user, key, access) && of_selectors(ctx, user, what, key, access)
}

fn of_selectors(
    ctx: &Context,
    user: &[u8],
    what: FamilyCall,
    key: Name<'_>,
    access: Access,
) -> bool {
    let (now, at) = (now_ms(), what as usize);
    let known = with_known(user, |known| {
        let (keys, read_at) = known.keys.get(at)?.as_ref()?;
        (*read_at + RULES_MS > now).then(|| keys.may_access(key, access))
    });
    known.flatten().unwrap_or_else(|| {
        let Some(rules) = ctx.rules_of(user) else {
            return false;
        };
        let keys = NAMES.with(|names| {
            let name = match what {
                FamilyCall::Fetch => &names.family_fetch,
                FamilyCall::Info => &names.family_info,
            };
            rules.keys_with(name.name())
        });
        let may = keys.may_access(key, access);
        with_known(user, |known| {
            if let Some(of_what) = known.keys.get_mut(at) {
                *of_what = Some((keys, now));
            }
        });
        may
    })
}

fn with_known<R>(user: &[u8], with: impl FnOnce(&mut Known) -> R) -> Option<R> {
    KNOWN.with_borrow_mut(|all| {
        let at = all.iter().position(|known| *known.user == *user);
        let at = at.unwrap_or_else(|| {
            if all.len() >= MOST_USERS {
                all.clear();
            }
            all.push(Known {
                user: Rc::from(user),
                is_enabled: None,
                keys: [None, None],
                applies: None,
            });
            all.len() - 1
        });
        all.get_mut(at).map(with)
    })
}

fn now_ms() -> u64 {
    clock::monotonic_us() / 1000
}
