//! Events of the server and of its keys.
//!
//! The bindings crate supports only half of these events, and decodes one of them wrongly.

use super::guard::contain;
use super::{followers, raw, replays, Context, Name};
use std::cell::Cell;
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_void};

/// The handlers of events.
///
/// No handler may change or replicate anything: the change would become part of the command that
/// caused the event (for example `REPLICAOF NO ONE` in a replica's stream), which has crashed
/// servers. They only remember what has happened, and set the timer. They must not rely on the key
/// of an event either, because it may be gone again.
#[derive(Clone, Copy)]
pub struct Events {
    /// This server became a primary (true) or a replica (false).
    pub role_changed: fn(&mut Context, bool),
    /// Loading has begun or ended. The data comes from a file or from a primary.
    pub loading: fn(&mut Context, Loading),
    /// A database was emptied, or all of them (`None`).
    pub flushed: fn(&mut Context, Option<i32>),
    /// Two databases were exchanged.
    pub swapped: fn(&mut Context, i32, i32),
    /// The connection of the client with this id is closing.
    pub client_closed: fn(&mut Context, u64),
    /// The server's cron, which runs about ten times per second.
    pub cron: fn(&mut Context),
    /// Something happened to a key of any type in the context's database: `restore`, `rename_to`,
    /// `copy_to`, `move_to`, `del`, `expired`, `evicted` and others. `loaded` comes for queues
    /// only, and the handler must not open its key.
    pub key: fn(&mut Context, &[u8], Name<'_>),
    /// A queue was removed from its key (database, name): the key was deleted, overwritten,
    /// expired, evicted, renamed or moved. Not called when a database is flushed.
    pub unlinked: fn(i32, &[u8]),
}

/// The steps of loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loading {
    /// The old data is gone.
    Started,
    /// The data is loaded. May be reported twice for one load.
    Ended,
    /// The loaded data is incomplete. The server will try again or stop.
    Failed,
}

thread_local! {
    static EVENTS: Cell<Option<Events>> = const { Cell::new(None) };
}

/// Subscribes to all events. Returns false if the server refuses one.
pub fn subscribe(ctx: &Context, events: Events) -> bool {
    EVENTS.set(Some(events));
    let server_events = [
        raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED,
        raw::REDISMODULE_EVENT_LOADING,
        raw::REDISMODULE_EVENT_FLUSHDB,
        raw::REDISMODULE_EVENT_SWAPDB,
        raw::REDISMODULE_EVENT_REPL_ASYNC_LOAD,
        raw::REDISMODULE_EVENT_CLIENT_CHANGE,
        raw::REDISMODULE_EVENT_CRON_LOOP,
        raw::REDISMODULE_EVENT_FORK_CHILD,
    ];
    for id in server_events {
        let event = raw::RedisModuleEvent { id, dataver: 1 };
        // SAFETY: the context is live.
        let done = unsafe {
            api!(RedisModule_SubscribeToServerEvent(
                ctx.as_ptr(),
                event,
                Some(server_event)
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

/// A queue was removed from its key. The data type calls this, without a context.
pub(super) fn unlinked(db: i32, name: &[u8]) {
    if let Some(events) = EVENTS.get() {
        (events.unlinked)(db, name);
    }
}

/// Runs `handle` with the handlers and a context.
///
/// # Safety
/// `ctx` must be the live context of an event.
unsafe fn dispatch(ctx: *mut raw::RedisModuleCtx, handle: impl FnOnce(&Events, &mut Context)) {
    contain((), || {
        // SAFETY: the caller guarantees it.
        let mut context = unsafe { Context::new(ctx) };
        if let Some(events) = EVENTS.get() {
            handle(&events, &mut context);
        }
    });
}

unsafe extern "C" fn server_event(
    ctx: *mut raw::RedisModuleCtx,
    event: raw::RedisModuleEvent,
    sub: u64,
    data: *mut c_void,
) {
    // SAFETY: the context is valid during the event, and the data has the form of the event.
    unsafe {
        dispatch(ctx, |events, context| match event.id {
            raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED => {
                assume_followers();
                let primary = sub == raw::REDISMODULE_EVENT_REPLROLECHANGED_NOW_MASTER;
                (events.role_changed)(context, primary);
            }
            raw::REDISMODULE_EVENT_LOADING => {
                assume_followers();
                let step = match sub {
                    raw::REDISMODULE_SUBEVENT_LOADING_ENDED => Loading::Ended,
                    raw::REDISMODULE_SUBEVENT_LOADING_FAILED => Loading::Failed,
                    _ => Loading::Started,
                };
                if step != Loading::Started || !context.is_async_loading() {
                    (events.loading)(context, step);
                }
            }
            // A replica may load a new copy while it still serves the old data, and then swap the
            // two. If that fails the old data stays, so the start is not reported. Only the
            // completed swap is.
            raw::REDISMODULE_EVENT_REPL_ASYNC_LOAD => {
                if sub == raw::REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_COMPLETED {
                    (events.loading)(context, Loading::Ended);
                }
            }
            raw::REDISMODULE_EVENT_FLUSHDB => {
                let flushed = data.cast::<raw::RedisModuleFlushInfo>().as_ref();
                if let (raw::REDISMODULE_SUBEVENT_FLUSHDB_END, Some(info)) = (sub, flushed) {
                    (events.flushed)(context, (info.dbnum >= 0).then_some(info.dbnum));
                }
            }
            raw::REDISMODULE_EVENT_SWAPDB => {
                if let Some(info) = data.cast::<raw::RedisModuleSwapDbInfo>().as_ref() {
                    (events.swapped)(context, info.dbnum_first, info.dbnum_second);
                }
            }
            raw::REDISMODULE_EVENT_CLIENT_CHANGE => {
                let client = data.cast::<raw::RedisModuleClientInfo>().as_ref();
                if let (raw::REDISMODULE_SUBEVENT_CLIENT_CHANGE_DISCONNECTED, Some(info)) =
                    (sub, client)
                {
                    (events.client_closed)(context, info.id);
                }
            }
            raw::REDISMODULE_EVENT_CRON_LOOP => {
                followers::check(context);
                replays::check(context);
                (events.cron)(context);
            }
            // A child process was forked, or has ended.
            _ => followers::assume_present(),
        });
    }
}

fn assume_followers() {
    followers::assume_present();
    replays::assume();
}

thread_local! {
    /// Whether a queue was loaded whose `loaded` event has not come yet.
    static LOADED: Cell<bool> = const { Cell::new(false) };
}

/// A queue was loaded. The data type calls this before the key exists.
pub(super) fn loaded() {
    LOADED.set(true);
}

unsafe extern "C" fn key(
    ctx: *mut raw::RedisModuleCtx,
    _: c_int,
    event: *const c_char,
    key: *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: event and key are valid for this call.
    unsafe {
        let event = CStr::from_ptr(event).to_bytes();
        // The server sends `loaded` for every key of a file, of any type, and the key's name is an
        // object on the stack. Opening a key by it would abort the server (7.0, object.c: "You
        // tried to retain an object allocated in the stack").
        if event == b"loaded" && !LOADED.take() {
            return raw::REDISMODULE_OK as c_int;
        }
        dispatch(ctx, |events, context| {
            (events.key)(context, event, Name::new(key));
        });
    }
    raw::REDISMODULE_OK as c_int
}
