//! Clients that wait for keys.
//!
//! They are blocked *on keys* and in no other way: the server then moves them
//! along when a slot leaves the node, and sends them away when the primary
//! becomes a replica. But it is the module that answers them: asking every
//! client of a key, as the server does when a key is signalled, costs as much
//! as there are clients.

use super::deadlines::{self, Deadline};
use super::guard::contain;
use super::{raw, Context, Name, Reply};
use std::cell::Cell;
use std::os::raw::{c_int, c_longlong, c_void};
use std::ptr;
use std::rc::Rc;

/// What a blocked client waits for. Dropped when the server has cleared the
/// wait away, a moment after its end.
pub trait Wait: 'static {
    /// The server says that there is a key of this name now. It tells every
    /// client that waits for it, so this must be cheap; and nothing may be
    /// changed or replicated: a server of 7.0 would end itself.
    fn appeared(&self, ctx: &Context, key: Name<'_>);

    /// The time is over, or the client was let go by CLIENT UNBLOCK: writes
    /// the reply.
    fn timed_out(&self, reply: Reply<'_>);

    /// The client is gone, or goes without a reply of ours: its connection is
    /// closed, its slot has left the node, the server is a replica now.
    fn gone(&self);
}

/// The timeout that the server is told.
const WITHOUT_END: c_longlong = 0;

/// A way to answer one blocked client. Outlives the wait harmlessly.
#[derive(Clone)]
pub struct Handle {
    client: Rc<Client>,
}

/// What a handle knows of its client.
struct Client {
    /// The server's record of it; null once it is answered or gone.
    record: Cell<*mut raw::RedisModuleBlockedClient>,
    /// While it is being answered: a `&mut dyn FnMut(Reply)` that does it.
    answer: Cell<*mut c_void>,
    /// When its wait ends by itself, if it does.
    deadline: Cell<Option<Deadline>>,
}

impl Client {
    /// The wait is over: the server's record of it, null where it was over before.
    fn end(&self) -> *mut raw::RedisModuleBlockedClient {
        if let Some(deadline) = self.deadline.take() {
            deadlines::remove(deadline);
        }
        self.record.replace(ptr::null_mut())
    }
}

impl Handle {
    /// Ends the wait with the reply that `write` writes; nothing where it has
    /// ended. `write` runs before this returns.
    pub fn answer(&self, write: impl FnOnce(Reply<'_>)) {
        let record = self.client.end();
        if record.is_null() {
            return;
        }
        let mut write = Some(write);
        let mut once = |reply: Reply<'_>| {
            if let Some(write) = write.take() {
                write(reply);
            }
        };
        let mut answer: &mut dyn FnMut(Reply<'_>) = &mut once;
        self.client.answer.set((&raw mut answer).cast());
        // SAFETY: the record is cleared by `gone`, `timed_out` and `freed`,
        // before the server frees what it points to, here and below.
        unsafe { api!(RedisModule_UnblockClient(record, ptr::null_mut())) };
        self.client.answer.set(ptr::null_mut());
        // Servers up to 7.2 have run the timeout callback by now, which has
        // written it. Later ones run that when they clear the wait away, and
        // then send what was written to a context of the wait (module.c,
        // RM_UnblockClient and moduleHandleBlockedClients). It is not the one
        // way for all: 7.0 may find in between that the time is over, and would
        // drop it.
        if let Some(write) = write {
            // SAFETY: the context is freed once.
            unsafe {
                let ctx = api!(RedisModule_GetThreadSafeContext(record));
                write(Reply::new(ctx));
                api!(RedisModule_FreeThreadSafeContext(ctx));
            }
        }
    }

    /// Whether the client is answered or gone.
    pub fn is_over(&self) -> bool {
        self.client.record.get().is_null()
    }
}

struct Blocked {
    wait: Rc<dyn Wait>,
    client: Rc<Client>,
}

/// Blocks the client of this call on keys, for `timeout_ms` milliseconds of a
/// clock that nobody sets (0: without end). Write no reply afterwards. `None`
/// where this client cannot be blocked; ask [`Context::deny_blocking`] first,
/// since the server answers an error of its own in those cases.
///
/// Sees to no timer: [`deadlines::end_overdue`] must be called in time.
pub fn block(
    ctx: &mut Context,
    keys: &[Name<'_>],
    timeout_ms: u64,
    wait: Rc<dyn Wait>,
) -> Option<Handle> {
    let count = c_int::try_from(keys.len()).ok()?;
    let mut names: Vec<_> = keys.iter().map(|name| name.as_ptr()).collect();
    let client = Rc::new(Client {
        record: Cell::new(ptr::null_mut()),
        answer: Cell::new(ptr::null_mut()),
        deadline: Cell::new(None),
    });
    let handle = Handle {
        client: Rc::clone(&client),
    };
    let blocked = Blocked {
        wait: Rc::clone(&wait),
        client,
    };
    let private = Box::into_raw(Box::new(blocked));
    // SAFETY: context and names are live; the server keeps names and private
    // data and gives the latter to the callbacks and then, once, to `freed`.
    let record = unsafe {
        api!(RedisModule_BlockClientOnKeys(
            ctx.as_ptr(),
            Some(ready),
            Some(timed_out),
            Some(freed),
            WITHOUT_END,
            names.as_mut_ptr(),
            count,
            private.cast::<c_void>()
        ))
    };
    if record.is_null() {
        // SAFETY: the server took nothing.
        drop(unsafe { Box::from_raw(private) });
        return None;
    }
    // SAFETY: the record is live.
    unsafe { api!(RedisModule_SetDisconnectCallback(record, Some(gone))) };
    handle.client.record.set(record);
    if timeout_ms > 0 {
        let deadline = deadlines::add(timeout_ms, handle.clone(), wait);
        handle.client.deadline.set(Some(deadline));
    }
    Some(handle)
}

/// The private data of the blocked client whose call this is.
///
/// # Safety
/// `ctx` must be the context of a callback of a client blocked by `block`.
unsafe fn private<'a>(ctx: *mut raw::RedisModuleCtx) -> &'a Blocked {
    // SAFETY: vouched for by the caller; only `freed` ends its life.
    unsafe { &*api!(RedisModule_GetBlockedClientPrivateData(ctx)).cast::<Blocked>() }
}

/// The server asks whether it can let the client go: never, we do that.
unsafe extern "C" fn ready(
    ctx: *mut raw::RedisModuleCtx,
    _: *mut *mut raw::RedisModuleString,
    _: c_int,
) -> c_int {
    contain((), || {
        // SAFETY: the context is the server's, for this call, of a client that
        // `block` blocked, and the key's name lives until the call ends.
        unsafe {
            let context = Context::new(ctx);
            let key = api!(RedisModule_GetBlockedClientReadyKey(ctx));
            if !key.is_null() {
                private(ctx).wait.appeared(&context, Name::new(key));
            }
        }
    });
    raw::REDISMODULE_ERR as c_int
}

unsafe extern "C" fn timed_out(
    ctx: *mut raw::RedisModuleCtx,
    _: *mut *mut raw::RedisModuleString,
    _: c_int,
) -> c_int {
    // SAFETY: the server's, for this call, of a client that `block` blocked.
    let reply = unsafe { Reply::new(ctx) };
    let done = contain(false, || {
        // SAFETY: as above.
        let Blocked { wait, client } = unsafe { private(ctx) };
        let answer = client.answer.replace(ptr::null_mut());
        if !answer.is_null() {
            // SAFETY: `Handle::answer`, which is running, has put it there.
            let answer = unsafe { &mut *answer.cast::<&mut dyn FnMut(Reply<'_>)>() };
            answer(reply);
        } else if !client.end().is_null() {
            wait.timed_out(reply);
        }
        true
    });
    if !done {
        reply.error("ERR internal error in the dq module");
    }
    raw::REDISMODULE_OK as c_int
}

/// The server lets go of a client that nobody has answered: `unblockClient` of
/// a closed or killed one, of CLIENT UNBLOCK ERROR, of a role change and of a
/// slot that has left; not after a timeout or an answer (module.c,
/// unblockClientFromModule).
unsafe extern "C" fn gone(ctx: *mut raw::RedisModuleCtx, _: *mut raw::RedisModuleBlockedClient) {
    contain((), || {
        // SAFETY: the server's, for this call, of a client that `block` blocked.
        let Blocked { wait, client } = unsafe { private(ctx) };
        client.end();
        wait.gone();
    });
}

unsafe extern "C" fn freed(_: *mut raw::RedisModuleCtx, private: *mut c_void) {
    contain((), || {
        // SAFETY: made by `block`; the server gives it back once.
        let blocked = unsafe { Box::from_raw(private.cast::<Blocked>()) };
        if !blocked.client.end().is_null() {
            blocked.wait.gone();
        }
    });
}
