//! Blocked clients: clients that wait for keys.
//!
//! Clients that wait for certain keys are blocked *on keys*, because the server then redirects
//! them when a slot leaves the node, and unblocks them when the primary becomes a replica. Clients
//! that wait for a family are blocked without keys. In both cases the module answers the clients
//! itself: when a key is signalled, the server calls back for every client that waits for the key,
//! so its cost grows with the number of clients.

use super::deadlines::{self, Deadline};
use super::guard::contain;
use super::wait::Wait;
use super::{raw, Context, Name, Reply};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::os::raw::{c_int, c_longlong, c_void};
use std::ptr;
use std::rc::Rc;

/// The timeout for the server: none, because [`deadlines`] ends waits.
const NO_TIMEOUT: c_longlong = 0;

/// A handle to answer one blocked client. It may outlive the wait; then it does nothing.
#[derive(Clone)]
pub struct Handle {
    client: Rc<Client>,
}

/// The state of a blocked client.
struct Client {
    /// The server's object for the blocked client. Null once the client is answered or gone.
    blocked: Cell<*mut raw::RedisModuleBlockedClient>,
    /// While the client is being answered: a `&mut dyn FnMut(Reply)` that writes the reply.
    answer: Cell<*mut c_void>,
    /// When the wait times out, if it has a timeout.
    deadline: Cell<Option<Deadline>>,
}

impl Client {
    /// Marks the wait as over. Returns the server's object for the blocked client, or null if the
    /// wait was already over.
    fn end(&self) -> *mut raw::RedisModuleBlockedClient {
        if let Some(deadline) = self.deadline.take() {
            deadlines::remove(deadline);
        }
        self.blocked.replace(ptr::null_mut())
    }
}

impl deadlines::Blocked for Client {
    fn time_out(self: Rc<Self>, wait: &dyn Wait) {
        Handle { client: self }.answer(|reply| wait.timed_out(reply));
    }
}

impl Handle {
    /// Ends the wait with the reply that `write` writes. `write` runs before this returns. Does
    /// nothing if the wait is already over.
    pub fn answer(&self, write: impl FnOnce(Reply<'_>)) {
        let blocked = self.client.end();
        if blocked.is_null() {
            return;
        }
        drop(take_without_keys(blocked));
        let mut write = Some(write);
        let mut once = |reply: Reply<'_>| {
            if let Some(write) = write.take() {
                write(reply);
            }
        };
        let mut answer: &mut dyn FnMut(Reply<'_>) = &mut once;
        self.client.answer.set((&raw mut answer).cast());
        // SAFETY: `gone`, `timed_out` and `freed` clear the pointer before the server frees what it
        // points to, here and below.
        unsafe { api!(RedisModule_UnblockClient(blocked, ptr::null_mut())) };
        self.client.answer.set(ptr::null_mut());
        // Servers up to 7.2 have already run the timeout callback, which has written the reply.
        // Later servers run it when they clean up the blocked client, and then also send what was
        // written to a thread-safe context of that client (module.c, RM_UnblockClient and
        // moduleHandleBlockedClients). Writing to such a context cannot serve all versions: 7.0
        // may find in between that the timeout is over, and would drop the reply.
        if let Some(write) = write {
            // SAFETY: the context is freed once.
            unsafe {
                let ctx = api!(RedisModule_GetThreadSafeContext(blocked));
                write(Reply::new(ctx));
                api!(RedisModule_FreeThreadSafeContext(ctx));
            }
        }
    }

    /// Whether the client is answered or gone.
    pub fn is_over(&self) -> bool {
        self.client.blocked.get().is_null()
    }
}

/// The private data of a blocked client: the server keeps it for the callbacks.
struct Private {
    wait: Rc<dyn Wait>,
    client: Rc<Client>,
}

/// Blocks the client of this call on keys, for `timeout_ms` milliseconds of the monotonic clock
/// (0: no timeout). The caller must not write a reply afterwards.
///
/// Returns `None` if this client cannot be blocked. The caller must check
/// [`Context::deny_blocking`] first, because the server writes an error of its own in those cases.
///
/// This sets no timer: the caller must see to it that [`deadlines::end_overdue`] is called in time.
pub fn block(
    ctx: &mut Context,
    keys: &[Name<'_>],
    timeout_ms: u64,
    wait: Rc<dyn Wait>,
) -> Option<Handle> {
    let count = c_int::try_from(keys.len()).ok()?;
    let mut names: Vec<_> = keys.iter().map(|name| name.as_ptr()).collect();
    let client = Rc::new(Client {
        blocked: Cell::new(ptr::null_mut()),
        answer: Cell::new(ptr::null_mut()),
        deadline: Cell::new(None),
    });
    let handle = Handle {
        client: Rc::clone(&client),
    };
    let private = Box::into_raw(Box::new(Private {
        wait: Rc::clone(&wait),
        client,
    }));
    // SAFETY: context and names are live. The server retains the names, and passes the private data
    // to the callbacks and finally, once, to `freed`.
    let blocked = unsafe {
        api!(RedisModule_BlockClientOnKeys(
            ctx.as_ptr(),
            Some(ready),
            Some(timed_out),
            Some(freed),
            NO_TIMEOUT,
            names.as_mut_ptr(),
            count,
            private.cast::<c_void>()
        ))
    };
    if blocked.is_null() {
        // SAFETY: the server has not kept the pointer.
        drop(unsafe { Box::from_raw(private) });
        return None;
    }
    // SAFETY: the blocked client is live.
    unsafe { api!(RedisModule_SetDisconnectCallback(blocked, Some(gone))) };
    handle.client.blocked.set(blocked);
    if timeout_ms > 0 {
        let deadline = deadlines::add(timeout_ms, Rc::clone(&handle.client) as _, wait);
        handle.client.deadline.set(Some(deadline));
    }
    Some(handle)
}

thread_local! {
    /// The clients that wait without keys. The server keeps no private data for them that outlives
    /// their unblocking on all versions, so they are found by the server's own record of each.
    static WITHOUT_KEYS: RefCell<HashMap<usize, Private>> = RefCell::default();
}

/// Like [`block`], but the client waits for no key. The server sends it away when this server
/// becomes a replica, but not when a slot leaves the node.
///
/// The server frees its record of such a client only after a call of RM_UnblockClient, in whichever
/// way the wait has ended (module.c, unblockClientFromModule).
pub fn block_without_keys(
    ctx: &mut Context,
    timeout_ms: u64,
    wait: Rc<dyn Wait>,
) -> Option<Handle> {
    // SAFETY: the context is live.
    let blocked = unsafe {
        api!(RedisModule_BlockClient(
            ctx.as_ptr(),
            None,
            Some(timed_out_without_keys),
            None,
            NO_TIMEOUT
        ))
    };
    if blocked.is_null() {
        return None;
    }
    // SAFETY: the blocked client is live.
    unsafe {
        api!(RedisModule_SetDisconnectCallback(
            blocked,
            Some(gone_without_keys)
        ))
    };
    let client = Rc::new(Client {
        blocked: Cell::new(blocked),
        answer: Cell::new(ptr::null_mut()),
        deadline: Cell::new(None),
    });
    let handle = Handle {
        client: Rc::clone(&client),
    };
    if timeout_ms > 0 {
        let deadline = deadlines::add(timeout_ms, Rc::clone(&client) as _, Rc::clone(&wait));
        handle.client.deadline.set(Some(deadline));
    }
    let private = Private { wait, client };
    WITHOUT_KEYS.with_borrow_mut(|clients| clients.insert(blocked as usize, private));
    Some(handle)
}

/// Removes and returns the wait of a client that waits without keys. `None` if it is over.
fn take_without_keys(blocked: *mut raw::RedisModuleBlockedClient) -> Option<Private> {
    WITHOUT_KEYS.with_borrow_mut(|clients| clients.remove(&(blocked as usize)))
}

/// CLIENT UNBLOCK has ended the wait of a client without keys.
unsafe extern "C" fn timed_out_without_keys(
    ctx: *mut raw::RedisModuleCtx,
    _: *mut *mut raw::RedisModuleString,
    _: c_int,
) -> c_int {
    // SAFETY: the context is valid for this call, and belongs to a blocked client.
    let (reply, blocked) = unsafe {
        let blocked = api!(RedisModule_GetBlockedClientHandle(ctx));
        (Reply::new(ctx), blocked)
    };
    contain((), || {
        if let Some(Private { wait, client }) = take_without_keys(blocked) {
            client.end();
            wait.timed_out(reply);
            // SAFETY: the wait was taken out of the table, so this is done once.
            unsafe { release(blocked) };
        }
    });
    raw::REDISMODULE_OK as c_int
}

/// Like [`gone`], for a client without keys.
unsafe extern "C" fn gone_without_keys(
    _: *mut raw::RedisModuleCtx,
    blocked: *mut raw::RedisModuleBlockedClient,
) {
    contain((), || {
        if let Some(Private { wait, client }) = take_without_keys(blocked) {
            client.end();
            wait.gone();
            // SAFETY: the wait was taken out of the table, so this is done once.
            unsafe { release(blocked) };
        }
    });
}

/// Lets the server free its record of a client without keys, whose wait it has ended itself.
///
/// # Safety
/// The server has passed `blocked` to the callback that is running, and this is called once for it.
unsafe fn release(blocked: *mut raw::RedisModuleBlockedClient) {
    // SAFETY: the caller guarantees it.
    unsafe { api!(RedisModule_UnblockClient(blocked, ptr::null_mut())) };
}

/// The private data of the blocked client whose call this is.
///
/// # Safety
/// `ctx` must be the context of a callback of a client blocked by `block`.
unsafe fn private<'a>(ctx: *mut raw::RedisModuleCtx) -> &'a Private {
    // SAFETY: the caller guarantees it; only `freed` drops it.
    unsafe { &*api!(RedisModule_GetBlockedClientPrivateData(ctx)).cast::<Private>() }
}

/// The key exists: the server asks whether it may unblock the client. It never may, because the
/// module does that.
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
    // SAFETY: the context is valid for this call, and belongs to a client that `block` blocked.
    let reply = unsafe { Reply::new(ctx) };
    let done = contain(false, || {
        // SAFETY: as above.
        let Private { wait, client } = unsafe { private(ctx) };
        let answer = client.answer.replace(ptr::null_mut());
        if !answer.is_null() {
            // SAFETY: `Handle::answer`, which is still running, has stored the pointer.
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

/// The server has unblocked a client without a reply from the module: the connection is closed or
/// killed, CLIENT UNBLOCK ERROR was called, the role has changed, or the slot has left the node.
/// The server does not call this after a timeout or an answer (module.c, unblockClientFromModule).
unsafe extern "C" fn gone(ctx: *mut raw::RedisModuleCtx, _: *mut raw::RedisModuleBlockedClient) {
    contain((), || {
        // SAFETY: the context is valid for this call, and belongs to a client that `block` blocked.
        let Private { wait, client } = unsafe { private(ctx) };
        client.end();
        wait.gone();
    });
}

unsafe extern "C" fn freed(_: *mut raw::RedisModuleCtx, private: *mut c_void) {
    contain((), || {
        // SAFETY: made by `block`; the server passes it here once.
        let private = unsafe { Box::from_raw(private.cast::<Private>()) };
        if !private.client.end().is_null() {
            private.wait.gone();
        }
    });
}
