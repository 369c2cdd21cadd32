//! The server during one call.

use super::records::Records;
use super::{raw, slots, Name, Reply};
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The connection speaks RESP3.
pub(super) const CTX_RESP3: c_int = raw::REDISMODULE_CTX_FLAGS_RESP3 as c_int;
/// What makes BLOCK a poll: MULTI, scripts, other modules' calls.
const CTX_NO_BLOCKING: c_int = (raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING
    | raw::REDISMODULE_CTX_FLAGS_MULTI
    | raw::REDISMODULE_CTX_FLAGS_LUA) as c_int;
const CTX_REPLAY: c_int =
    (raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING) as c_int;
const CTX_PRIMARY: c_int = raw::REDISMODULE_CTX_FLAGS_MASTER as c_int;
const CTX_CLUSTER: c_int = raw::REDISMODULE_CTX_FLAGS_CLUSTER as c_int;
const CTX_LOADING_BESIDE: c_int = raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING as c_int;
/// The data is not whole, or not ours to change.
const CTX_NOT_NOW: c_int = (raw::REDISMODULE_CTX_FLAGS_LOADING
    | raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING
    | raw::REDISMODULE_CTX_FLAGS_IS_CHILD) as c_int;
/// The id of the client that replays the append-only file.
const AOF_CLIENT: u64 = u64::MAX;

/// `MustObeyClient` of servers that have it, which the bindings do not know.
static MUST_OBEY: AtomicUsize = AtomicUsize::new(0);

type MustObeyClient = unsafe extern "C" fn(*mut raw::RedisModuleCtx) -> c_int;

/// Looks up the functions that the bindings do not know.
///
/// # Safety
/// The API must be initialised.
pub(super) unsafe fn resolve() {
    let mut function: *mut c_void = std::ptr::null_mut();
    // SAFETY: the server writes a function pointer where it knows the name.
    let found = unsafe {
        api!(RedisModule_GetApi(
            c"RedisModule_MustObeyClient".as_ptr(),
            (&raw mut function).cast()
        ))
    };
    if found == raw::REDISMODULE_OK as c_int {
        MUST_OBEY.store(function as usize, Ordering::Relaxed);
    }
}

/// The server during one call; never outlives it, never leaves its thread.
///
/// What takes `&self` runs nobody else's code. What takes `&mut self` may,
/// or opens a key; so a queue and such a call exclude each other.
pub struct Context {
    ctx: *mut raw::RedisModuleCtx,
    /// Whether records are gathered, and those that have been.
    gathers: Cell<bool>,
    gathered: RefCell<Option<Records>>,
    /// Whether the call is a command.
    is_command: bool,
    /// What the server says of this call, 0 as long as it was not asked.
    flags: Cell<c_int>,
}

/// What was gathered is replicated at the end of the call, however it ends.
impl Drop for Context {
    #[inline]
    fn drop(&mut self) {
        if self.gathers.get() {
            self.send_gathered();
        }
    }
}

impl Context {
    /// # Safety
    /// `ctx` must be live as long as the result, and no other `Context` of
    /// the same call may be in use meanwhile.
    pub(super) unsafe fn new(ctx: *mut raw::RedisModuleCtx) -> Self {
        Context {
            ctx,
            gathers: Cell::new(false),
            gathered: RefCell::default(),
            is_command: false,
            flags: Cell::new(0),
        }
    }

    /// The same for the call of a command.
    ///
    /// # Safety
    /// As above.
    pub(super) unsafe fn of_command(ctx: *mut raw::RedisModuleCtx) -> Self {
        // SAFETY: vouched for by the caller.
        let mut context = unsafe { Context::new(ctx) };
        context.is_command = true;
        context
    }

    pub(super) fn as_ptr(&self) -> *mut raw::RedisModuleCtx {
        self.ctx
    }

    /// The writer of this call's reply.
    #[inline]
    pub fn reply(&self) -> Reply<'_> {
        // SAFETY: the context is live as long as self.
        unsafe { Reply::new(self.ctx) }
    }

    #[inline]
    pub(super) fn flags(&self) -> c_int {
        let known = self.flags.get();
        if known != 0 {
            return known;
        }
        // SAFETY: the context is live, here and below (see new).
        let flags = unsafe { api!(RedisModule_GetContextFlags(self.ctx)) };
        self.flags.set(flags);
        flags
    }

    /// Whether a client that would have to wait must be answered at once:
    /// inside MULTI, a script or another module's call. Blocking there would
    /// answer an error.
    pub fn deny_blocking(&self) -> bool {
        self.flags() & CTX_NO_BLOCKING != 0
    }

    /// Whether the command comes from our primary or from a file of our own.
    #[inline]
    pub fn is_replay(&self) -> bool {
        self.flags() & CTX_REPLAY != 0 || self.client_id() == AOF_CLIENT
    }

    /// Whether this server is a node of a cluster.
    #[inline]
    pub fn is_in_cluster(&self) -> bool {
        self.flags() & CTX_CLUSTER != 0
    }

    /// Whether the command repeats what was decided elsewhere (replication,
    /// loading, slot import) and so may not be refused.
    pub fn must_obey(&self) -> bool {
        if self.is_replay() {
            return true;
        }
        let function = MUST_OBEY.load(Ordering::Relaxed);
        if function == 0 {
            return false;
        }
        // SAFETY: the address is the one the server gave under this name.
        unsafe {
            let must_obey: MustObeyClient = std::mem::transmute(function);
            must_obey(self.ctx) != 0
        }
    }

    /// Whether this server may change a queue unasked (timer, serving blocked
    /// clients): it is a primary, nothing is loading, and no pause or failover
    /// is on. Replicating during one of those ends the server.
    pub fn may_act(&self) -> bool {
        let flags = self.flags();
        if flags & CTX_PRIMARY == 0 || flags & CTX_NOT_NOW != 0 {
            return false;
        }
        // SAFETY: takes nothing.
        unsafe { raw::RedisModule_AvoidReplicaTraffic.is_none_or(|avoid| avoid() == 0) }
    }

    /// Whether this node serves the key. A slot that is being imported or
    /// trimmed is hidden from clients, not from timers; a timer that changed
    /// it would fork it from the node that owns it.
    pub fn owns(&self, name: Name<'_>) -> bool {
        if !self.is_in_cluster() {
            return true;
        }
        // Servers that lack this function move no slots before they hand them over.
        // SAFETY: set at load.
        let Some(slot_of) = (unsafe { raw::RedisModule_ClusterKeySlot }) else {
            return true;
        };
        // SAFETY: the name is a live string.
        let slot = unsafe { slot_of(name.as_ptr()) } as c_int;
        // Redis can be asked, Valkey has told.
        // SAFETY: takes a number only.
        let can_access =
            unsafe { raw::RedisModule_ClusterCanAccessKeysInSlot.is_none_or(|ask| ask(slot) != 0) };
        can_access && !slots::is_importing(slot)
    }

    /// Whether a replica is loading a copy beside the data it still serves.
    pub(super) fn is_loading_beside(&self) -> bool {
        self.flags() & CTX_LOADING_BESIDE != 0
    }

    /// Whether this server is a primary.
    pub fn is_primary(&self) -> bool {
        self.flags() & CTX_PRIMARY != 0
    }

    /// The number of the selected database.
    #[inline]
    pub fn db(&self) -> i32 {
        // SAFETY: as above.
        unsafe { api!(RedisModule_GetSelectedDb(self.ctx)) }
    }

    /// Selects a database; false where there is none of that number.
    pub fn select_db(&mut self, db: i32) -> bool {
        // SAFETY: as above.
        unsafe { api!(RedisModule_SelectDb(self.ctx, db)) == raw::REDISMODULE_OK as c_int }
    }

    /// The id of the client whose call this is; 0 in a timer.
    #[inline]
    pub fn client_id(&self) -> u64 {
        // SAFETY: as above.
        unsafe { api!(RedisModule_GetClientId(self.ctx)) }
    }

    /// Whether there is anybody to hand records to. Where there is not, the command
    /// itself counts among the changes that snapshots are made by.
    #[inline]
    pub fn hands_records_on(&self) -> bool {
        !self.is_command || self.is_followed()
    }

    /// Whether the running command may travel as it came to those who are handed
    /// records. Not in a cluster, where an importing node is told by clients that cannot
    /// be told from others; nor behind records of the same call (see
    /// [`Context::gather_records`]).
    #[inline]
    pub fn hands_commands_on(&self) -> bool {
        self.hands_records_on() && !self.is_in_cluster() && !self.gathers.get()
    }

    /// Replicates the running command as it came. Once per call, and only for
    /// a command that is itself a record or says as much, or where nobody follows.
    pub fn replicate_command(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplicateVerbatim(self.ctx)) };
    }

    /// From now on until the end of this call the records of one queue are
    /// gathered and travel as one command. Two commands of one call travel
    /// inside MULTI, and a file torn there loses what is written after it.
    pub fn gather_records(&self) {
        self.gathers.set(true);
    }

    /// Whether there are any.
    pub fn has_gathered(&self) -> bool {
        self.gathered.borrow().is_some()
    }

    fn send_gathered(&self) {
        if let Some(mut records) = self.gathered.take() {
            // SAFETY: the context is live.
            unsafe { records.send(self.ctx) };
        }
    }

    /// Replicates one operation: `DQ.OP name record` goes to the replicas
    /// and to the append-only file. Once per call, or gathered. Never from the
    /// handler of an event that is part of a command.
    #[inline]
    pub fn replicate(&self, name: Name<'_>, record: &[u8]) {
        if self.gathers.get() {
            let is_of_another = |gathered: &Records| !gathered.are_of(name);
            if self.gathered.borrow().as_ref().is_some_and(is_of_another) {
                self.send_gathered();
            }
            let mut gathered = self.gathered.borrow_mut();
            gathered
                .get_or_insert_with(|| Records::of(name))
                .add(record);
            return;
        }
        // SAFETY: as above; the format tells the types of what follows, and
        // the server copies the record.
        unsafe {
            api!(RedisModule_Replicate(
                self.ctx,
                c"DQ.OP".as_ptr(),
                c"sb".as_ptr(),
                name.as_ptr(),
                record.as_ptr(),
                record.len()
            ));
        }
    }

    /// Tells the server that the key has changed: WATCH and client-side
    /// caches. Only after a real change.
    #[inline]
    pub fn signal_modified(&self, name: Name<'_>) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_SignalModifiedKey(self.ctx, name.as_ptr())) };
    }

    /// Whether anybody has subscribed to keyspace events of modules: ask
    /// before working out what to publish.
    #[inline]
    pub fn wants_events(&self) -> bool {
        // SAFETY: takes nothing.
        let on = unsafe { api!(RedisModule_GetNotifyKeyspaceEvents()) };
        on & raw::REDISMODULE_NOTIFY_MODULE != 0
    }

    /// Publishes a keyspace event of the module class. Other modules that
    /// listen run before this returns.
    pub fn notify_event(&mut self, event: &'static CStr, name: Name<'_>) {
        // SAFETY: as above.
        unsafe {
            api!(RedisModule_NotifyKeyspaceEvent(
                self.ctx,
                raw::REDISMODULE_NOTIFY_MODULE,
                event.as_ptr(),
                name.as_ptr()
            ))
        };
    }

    /// Adds a sample of `ms` milliseconds to the server's latency monitor,
    /// which keeps it if it is above its threshold.
    pub fn latency_sample(&self, event: &'static CStr, ms: u64) {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX);
        // SAFETY: the event is a C string.
        unsafe { api!(RedisModule_LatencyAddSample(event.as_ptr(), ms)) };
    }
}
