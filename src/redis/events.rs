//! What the server tells of itself and of its keys.
//!
//! The bindings crate knows half of the events and reads one of them wrongly.

use super::guard::contain;
use super::{followers, raw, Context, Name};
use std::cell::Cell;
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_void};

/// What the module does about events.
///
/// None of these may change or replicate anything: it would become part of
/// the command that caused the event (`REPLICAOF NO ONE` in a replica's
/// stream) and has crashed servers. They take notes and set the timer. Nor
/// may they rely on the key of an event: it may be gone again.
#[derive(Clone, Copy)]
pub struct Events {
    /// This server became a primary (true) or a replica (false).
    pub role_changed: fn(&mut Context, bool),
    /// Loading began or ended, from a file or from a primary.
    pub loading: fn(&mut Context, Loading),
    /// A database, or all of them (`None`), was emptied.
    pub flushed: fn(&mut Context, Option<i32>),
    /// Two databases were exchanged.
    pub swapped: fn(&mut Context, i32, i32),
    /// The connection of the client of this id is closing.
    pub client_closed: fn(&mut Context, u64),
    /// Some ten times a second.
    pub cron: fn(&mut Context),
    /// Something happened to a key of the context's database, of any type:
    /// `restore`, `rename_to`, `copy_to`, `move_to`, `del`, `expired`,
    /// `evicted` and others; `loaded` comes for queues only, and of it the key
    /// must not be opened.
    pub key: fn(&mut Context, &[u8], Name<'_>),
    /// A queue lost its key (database, name): deleted, overwritten, expired,
    /// evicted, renamed or moved, but not flushed.
    pub unlinked: fn(i32, &[u8]),
}

/// The steps of loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loading {
    /// The old data is gone.
    Started,
    /// The data is there. May be told twice of one load.
    Ended,
    /// What was loaded is not whole; the server will try again or stop.
    Failed,
}

thread_local! {
    static EVENTS: Cell<Option<Events>> = const { Cell::new(None) };
}

/// Subscribes to all of them. False where the server refuses one.
pub fn subscribe(ctx: &Context, events: Events) -> bool {
    EVENTS.set(Some(events));
    let listeners: [(u64, raw::RedisModuleEventCallback); 8] = [
        (raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED, Some(role)),
        (raw::REDISMODULE_EVENT_LOADING, Some(loading)),
        (raw::REDISMODULE_EVENT_FLUSHDB, Some(flush)),
        (raw::REDISMODULE_EVENT_SWAPDB, Some(swap)),
        (raw::REDISMODULE_EVENT_REPL_ASYNC_LOAD, Some(async_load)),
        (raw::REDISMODULE_EVENT_CLIENT_CHANGE, Some(client)),
        (raw::REDISMODULE_EVENT_CRON_LOOP, Some(cron)),
        (raw::REDISMODULE_EVENT_FORK_CHILD, Some(followers::forked)),
    ];
    for (id, callback) in listeners {
        let event = raw::RedisModuleEvent { id, dataver: 1 };
        // SAFETY: the context is live.
        let done = unsafe {
            api!(RedisModule_SubscribeToServerEvent(
                ctx.as_ptr(),
                event,
                callback
            ))
        };
        if done != raw::REDISMODULE_OK as c_int {
            return false;
        }
    }
    let kinds = raw::REDISMODULE_NOTIFY_GENERIC
        | raw::REDISMODULE_NOTIFY_LOADED
        | raw::REDISMODULE_NOTIFY_EXPIRED
        | raw::REDISMODULE_NOTIFY_EVICTED;
    // SAFETY: as above.
    let done = unsafe {
        api!(RedisModule_SubscribeToKeyspaceEvents(
            ctx.as_ptr(),
            kinds,
            Some(key)
        ))
    };
    done == raw::REDISMODULE_OK as c_int
}

/// A queue lost its key. Comes from the data type, which no context reaches.
pub(super) fn unlinked(db: i32, name: &[u8]) {
    if let Some(events) = EVENTS.get() {
        (events.unlinked)(db, name);
    }
}

/// # Safety
/// `ctx` must be the live context of an event.
unsafe fn tell(ctx: *mut raw::RedisModuleCtx, what: impl FnOnce(&Events, &mut Context)) {
    contain((), || {
        // SAFETY: vouched for by the caller.
        let mut context = unsafe { Context::new(ctx) };
        if let Some(events) = EVENTS.get() {
            what(&events, &mut context);
        }
    });
}

unsafe extern "C" fn role(
    ctx: *mut raw::RedisModuleCtx,
    _: raw::RedisModuleEvent,
    sub: u64,
    _: *mut c_void,
) {
    followers::may_have_come();
    let primary = sub == raw::REDISMODULE_EVENT_REPLROLECHANGED_NOW_MASTER;
    // SAFETY: the context is the event's, here and below.
    unsafe {
        tell(ctx, |events, context| {
            (events.role_changed)(context, primary)
        })
    };
}

unsafe extern "C" fn loading(
    ctx: *mut raw::RedisModuleCtx,
    _: raw::RedisModuleEvent,
    sub: u64,
    _: *mut c_void,
) {
    followers::may_have_come();
    let step = match sub {
        raw::REDISMODULE_SUBEVENT_LOADING_ENDED => Loading::Ended,
        raw::REDISMODULE_SUBEVENT_LOADING_FAILED => Loading::Failed,
        _ => Loading::Started,
    };
    // SAFETY: as above.
    unsafe {
        tell(ctx, |events, context| {
            if step != Loading::Started || !context.is_loading_beside() {
                (events.loading)(context, step);
            }
        });
    };
}

/// A replica may load a copy beside the data it has, and then exchange the two.
/// Where that fails the old data stays, so its start is not reported; that the
/// exchange has taken place is.
unsafe extern "C" fn async_load(
    ctx: *mut raw::RedisModuleCtx,
    _: raw::RedisModuleEvent,
    sub: u64,
    _: *mut c_void,
) {
    if sub == raw::REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_COMPLETED {
        // SAFETY: as above.
        unsafe {
            tell(ctx, |events, context| {
                (events.loading)(context, Loading::Ended)
            })
        };
    }
}

unsafe extern "C" fn flush(
    ctx: *mut raw::RedisModuleCtx,
    _: raw::RedisModuleEvent,
    sub: u64,
    data: *mut c_void,
) {
    if sub != raw::REDISMODULE_SUBEVENT_FLUSHDB_END || data.is_null() {
        return;
    }
    // SAFETY: the data of this event has this form.
    let db = unsafe { (*data.cast::<raw::RedisModuleFlushInfo>()).dbnum };
    let db = (db >= 0).then_some(db);
    // SAFETY: as above.
    unsafe { tell(ctx, |events, context| (events.flushed)(context, db)) };
}

unsafe extern "C" fn swap(
    ctx: *mut raw::RedisModuleCtx,
    _: raw::RedisModuleEvent,
    _: u64,
    data: *mut c_void,
) {
    if data.is_null() {
        return;
    }
    // SAFETY: the data of this event has this form.
    let (first, second) = unsafe {
        let info = &*data.cast::<raw::RedisModuleSwapDbInfo>();
        (info.dbnum_first, info.dbnum_second)
    };
    // SAFETY: as above.
    unsafe {
        tell(ctx, |events, context| {
            (events.swapped)(context, first, second)
        })
    };
}

unsafe extern "C" fn client(
    ctx: *mut raw::RedisModuleCtx,
    _: raw::RedisModuleEvent,
    sub: u64,
    data: *mut c_void,
) {
    if sub != raw::REDISMODULE_SUBEVENT_CLIENT_CHANGE_DISCONNECTED || data.is_null() {
        return;
    }
    // SAFETY: the data of this event has this form.
    let id = unsafe { (*data.cast::<raw::RedisModuleClientInfo>()).id };
    // SAFETY: as above.
    unsafe { tell(ctx, |events, context| (events.client_closed)(context, id)) };
}

unsafe extern "C" fn cron(
    ctx: *mut raw::RedisModuleCtx,
    _: raw::RedisModuleEvent,
    _: u64,
    _: *mut c_void,
) {
    // SAFETY: as above.
    unsafe {
        tell(ctx, |events, context| {
            followers::look(context);
            (events.cron)(context);
        })
    };
}

thread_local! {
    /// Whether a queue was loaded that no event has told of yet.
    static LOADED: Cell<bool> = const { Cell::new(false) };
}

/// A queue was loaded. Comes from the data type, before the key is there.
pub(super) fn loaded() {
    LOADED.set(true);
}

unsafe extern "C" fn key(
    ctx: *mut raw::RedisModuleCtx,
    _: c_int,
    event: *const c_char,
    key: *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: event and key are the server's, for this call.
    unsafe {
        let event = CStr::from_ptr(event).to_bytes();
        // A file tells of every key in it, of any type, by a name on the stack
        // that opens nothing: "You tried to retain an object allocated in the
        // stack" ends the server (7.0, object.c).
        if event == b"loaded" && !LOADED.take() {
            return raw::REDISMODULE_OK as c_int;
        }
        tell(ctx, |events, context| {
            (events.key)(context, event, Name::new(key));
        });
    }
    raw::REDISMODULE_OK as c_int
}
