//! The functions of the server that can be used during one call.

use super::log_entries::LogEntries;
use super::{raw, slots, write_refusal, Name, OwnedName, Reply};
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The connection uses RESP3.
pub(super) const CTX_RESP3: c_int = raw::REDISMODULE_CTX_FLAGS_RESP3 as c_int;
const CTX_BLOCK: c_int =
    (raw::REDISMODULE_CTX_FLAGS_MULTI | raw::REDISMODULE_CTX_FLAGS_LUA) as c_int;
/// The calls in which no client can be blocked: those in a block, and calls by other modules.
const CTX_NO_BLOCKING: c_int = raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING as c_int | CTX_BLOCK;
pub(super) const CTX_PRIMARY: c_int = raw::REDISMODULE_CTX_FLAGS_MASTER as c_int;
pub(super) const CTX_CLUSTER: c_int = raw::REDISMODULE_CTX_FLAGS_CLUSTER as c_int;
const CTX_READ_ONLY: c_int = raw::REDISMODULE_CTX_FLAGS_READONLY as c_int;
const CTX_ASYNC_LOADING: c_int = raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING as c_int;
/// The data is incomplete, or this process must not change it.
const CTX_NOT_NOW: c_int = (raw::REDISMODULE_CTX_FLAGS_LOADING
    | raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING
    | raw::REDISMODULE_CTX_FLAGS_IS_CHILD) as c_int;

/// The address of `RedisModule_MustObeyClient`, or 0 if the server lacks it. The bindings crate
/// does not declare it.
static MUST_OBEY: AtomicUsize = AtomicUsize::new(0);

/// Whether this server is a node of a cluster. A server is started as one or is none, so this is set
/// when the module is loaded.
static IS_IN_CLUSTER: AtomicBool = AtomicBool::new(false);

type MustObeyClient = unsafe extern "C" fn(*mut raw::RedisModuleCtx) -> c_int;

/// Finds the API functions that the bindings crate does not declare.
///
/// # Safety
/// The API must be initialised.
pub(super) unsafe fn resolve() {
    let mut function: *mut c_void = std::ptr::null_mut();
    // SAFETY: the server writes a function pointer if it knows the name.
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

/// The server during one call. It never outlives the call and never leaves the thread.
///
/// Methods that take `&self` run no code outside the module. Methods that take `&mut self` may run
/// code of other modules, or open a key. So none of them can be called while a queue is borrowed.
pub struct Context {
    ctx: *mut raw::RedisModuleCtx,
    /// Whether log entries are collected instead of being replicated one by one.
    is_collecting: Cell<bool>,
    /// The collected log entries.
    collected: RefCell<Option<LogEntries>>,
    /// Whether the call is a command.
    is_command: bool,
    /// The context flags of this call, or 0 before they were read.
    flags: Cell<c_int>,
}

/// Replicates the collected log entries at the end of the call, even if the call panics.
impl Drop for Context {
    #[inline]
    fn drop(&mut self) {
        if self.is_collecting.get() {
            self.send_collected();
        }
    }
}

impl Context {
    /// # Safety
    /// `ctx` must be live as long as the result, and no other `Context` of the same call may be in
    /// use at the same time.
    pub(super) unsafe fn new(ctx: *mut raw::RedisModuleCtx) -> Self {
        Context {
            ctx,
            is_collecting: Cell::new(false),
            collected: RefCell::default(),
            is_command: false,
            flags: Cell::new(0),
        }
    }

    /// A context for the call of a command.
    ///
    /// # Safety
    /// As for [`Context::new`].
    pub(super) unsafe fn of_command(ctx: *mut raw::RedisModuleCtx) -> Self {
        // SAFETY: the caller guarantees it.
        let mut context = unsafe { Context::new(ctx) };
        context.is_command = true;
        context
    }

    pub(super) fn as_ptr(&self) -> *mut raw::RedisModuleCtx {
        self.ctx
    }

    /// Writes this call's reply.
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

    /// Whether the client cannot be blocked, because the call is inside MULTI, a script or a call
    /// by another module. Blocking there would reply with an error.
    pub fn deny_blocking(&self) -> bool {
        self.flags() & CTX_NO_BLOCKING != 0
    }

    /// Whether a FAILOVER is under way, after which this primary is a replica. Costs some 30
    /// microseconds.
    pub fn is_failing_over(&self) -> bool {
        write_refusal::is_failing_over(self)
    }

    /// Finds out whether this server is a node of a cluster. Called when the module is loaded.
    pub(super) fn look_for_cluster(&self) {
        IS_IN_CLUSTER.store(self.flags() & CTX_CLUSTER != 0, Ordering::Relaxed);
    }

    /// Whether this server is a node of a cluster.
    #[inline]
    pub fn is_in_cluster(&self) -> bool {
        IS_IN_CLUSTER.load(Ordering::Relaxed)
    }

    /// Whether the command repeats a change that another server has made (replication, loading,
    /// slot import), and so must not be refused.
    pub fn must_obey(&self) -> bool {
        if self.is_replay() {
            return true;
        }
        let function = MUST_OBEY.load(Ordering::Relaxed);
        if function == 0 {
            return false;
        }
        // SAFETY: the address is the one that the server returned for this name.
        unsafe {
            let must_obey: MustObeyClient = std::mem::transmute(function);
            must_obey(self.ctx) != 0
        }
    }

    /// Whether this server may change what no client sees: no data are loading, and no child of the
    /// server shares its memory.
    pub fn may_tidy(&self) -> bool {
        let child = raw::REDISMODULE_CTX_FLAGS_ACTIVE_CHILD as c_int;
        self.flags() & (CTX_NOT_NOW | child) == 0
    }

    /// Whether this server may change a queue outside a command (in the timer, or for blocked
    /// clients): it is a primary, nothing is loading, no CLIENT PAUSE or failover is in progress,
    /// and it takes the writes of clients. Replicating during a pause or failover would abort the
    /// server; why it must take writes says `write_refusal`.
    pub fn may_act(&self) -> bool {
        let flags = self.flags();
        if flags & CTX_PRIMARY == 0 || flags & CTX_NOT_NOW != 0 {
            return false;
        }
        // SAFETY: the function takes no arguments.
        let is_paused =
            unsafe { raw::RedisModule_AvoidReplicaTraffic.is_some_and(|avoid| avoid() != 0) };
        !is_paused && !write_refusal::is_refusing(self)
    }

    /// Whether this server is a replica that refuses the writes of clients.
    pub fn is_read_only(&self) -> bool {
        self.flags() & CTX_READ_ONLY != 0
    }

    /// Whether this node serves the key. A slot that is being imported or trimmed is hidden from
    /// clients but not from timers. A timer that changed a queue in such a slot would make it
    /// differ from the queue on the node that owns the slot.
    pub fn owns(&self, name: Name<'_>) -> bool {
        let Some(slot) = self.slot_of(name) else {
            return true;
        };
        // Redis has a function for this; Valkey has sent events (see `slots`).
        // SAFETY: the function takes a number only.
        let is_accessible = unsafe {
            raw::RedisModule_ClusterCanAccessKeysInSlot
                .is_none_or(|can_access| can_access(slot) != 0)
        };
        is_accessible && !slots::is_importing(slot)
    }

    /// The slot of a key in a cluster. `None` elsewhere, and on a server that cannot tell: such a
    /// server never has keys of a slot before it owns the slot, nor replicates a slot by itself.
    fn slot_of(&self, name: Name<'_>) -> Option<c_int> {
        if !self.is_in_cluster() {
            return None;
        }
        // SAFETY: the pointer is set at load, and the name is a live string.
        unsafe { raw::RedisModule_ClusterKeySlot.map(|slot_of| slot_of(name.as_ptr()) as c_int) }
    }

    /// Whether this replica is loading a new copy of the data while it still serves the old one.
    pub(super) fn is_async_loading(&self) -> bool {
        self.flags() & CTX_ASYNC_LOADING != 0
    }

    /// Whether a script or function is running.
    pub fn is_in_script(&self) -> bool {
        self.flags() & raw::REDISMODULE_CTX_FLAGS_LUA as c_int != 0
    }

    /// Whether the call is inside MULTI or a script: the log has it in a block with others.
    pub fn is_in_block(&self) -> bool {
        self.flags() & CTX_BLOCK != 0
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

    /// Selects a database. Returns false if there is none with that number.
    pub fn select_db(&mut self, db: i32) -> bool {
        // SAFETY: as above.
        unsafe { api!(RedisModule_SelectDb(self.ctx, db)) == raw::REDISMODULE_OK as c_int }
    }

    /// The id of the client that made this call. 0 in a timer.
    #[inline]
    pub fn client_id(&self) -> u64 {
        // SAFETY: as above.
        unsafe { api!(RedisModule_GetClientId(self.ctx)) }
    }

    /// Whether a log entry must be written for a change. Without an append-only file, a replica or
    /// a backlog, [`Context::replicate_verbatim`] is enough: it only counts the change for the
    /// server's `save` rules.
    #[inline]
    pub fn needs_log_entries(&self) -> bool {
        !self.is_command || self.is_followed()
    }

    /// Whether the running command may be replicated verbatim instead of as a log entry. Not in a
    /// cluster: there a node that imports a slot gets commands from a client that looks like any
    /// other. Not while log entries of the same call are collected (see
    /// [`Context::collect_log_entries`]).
    #[inline]
    pub fn may_replicate_verbatim(&self) -> bool {
        self.needs_log_entries() && !self.is_in_cluster() && !self.is_collecting.get()
    }

    /// Replicates the running command verbatim. At most once per call, and only for a command that
    /// carries all that a replica needs, or where [`Context::needs_log_entries`] is false.
    pub fn replicate_verbatim(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplicateVerbatim(self.ctx)) };
    }

    /// Collects the log entries from now on until the end of this call or
    /// [`Context::replicate_collected`], and replicates them as one command: a file or a replica
    /// has all of them or none. The server wraps two commands of one call in MULTI, and if the
    /// append-only file is truncated inside MULTI, all that follows is lost.
    pub fn collect_log_entries(&self) {
        self.is_collecting.set(true);
    }

    /// Whether log entries of this queue can be in one command with those that were collected:
    /// all are of one database, and in a cluster of one slot, because a slot may be replicated
    /// separately to the node that takes it over.
    pub fn can_collect(&self, db: i32, key: &[u8]) -> bool {
        let collected = self.collected.borrow();
        let may_be_of = |collected: &LogEntries| {
            let is_of_slot = || {
                let name = OwnedName::new(key);
                collected.is_of_slot(self.slot_of(name.name()))
            };
            collected.is_of_db(db) && (!self.is_in_cluster() || is_of_slot())
        };
        collected.as_ref().is_none_or(may_be_of)
    }

    /// Like [`Context::collect_log_entries`]. Returns whether none were collected before in this
    /// call: then the caller must call [`Context::replicate_collected`].
    pub fn begin_to_collect(&self) -> bool {
        !self.is_collecting.replace(true)
    }

    /// Replicates the collected log entries now, and collects no more.
    pub fn replicate_collected(&self) {
        self.is_collecting.set(false);
        self.send_collected();
    }

    fn send_collected(&self) {
        if let Some(entries) = self.collected.take() {
            // SAFETY: the context is live, and a queue of another database is opened only if its log
            // entries can be collected too.
            unsafe { entries.send(self.ctx) };
        }
    }

    /// Replicates one log entry: `DQ.OP name entry` goes to the replicas and to the append-only
    /// file. At most once per call, unless log entries are collected. Never from an event handler
    /// that runs as part of a command.
    #[inline]
    pub fn replicate(&self, name: Name<'_>, entry: &[u8]) {
        if self.is_collecting.get() {
            if !self.can_collect(self.db(), name.bytes()) {
                self.send_collected();
            }
            let mut collected = self.collected.borrow_mut();
            collected
                .get_or_insert_with(|| LogEntries::new(self.db(), self.slot_of(name)))
                .add(name, entry);
            return;
        }
        // SAFETY: as above. The format gives the types of the arguments, and the server copies the
        // entry.
        unsafe {
            api!(RedisModule_Replicate(
                self.ctx,
                c"DQ.OP".as_ptr(),
                c"sb".as_ptr(),
                name.as_ptr(),
                entry.as_ptr(),
                entry.len()
            ));
        }
    }

    /// Signals that the key has changed, for WATCH and client-side caches. Call it only after a
    /// visible change.
    #[inline]
    pub fn signal_modified(&self, name: Name<'_>) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_SignalModifiedKey(self.ctx, name.as_ptr())) };
    }

    /// Whether keyspace events of modules are enabled: check this before composing an event.
    #[inline]
    pub fn wants_events(&self) -> bool {
        // SAFETY: the function takes no arguments.
        let on = unsafe { api!(RedisModule_GetNotifyKeyspaceEvents()) };
        on & raw::REDISMODULE_NOTIFY_MODULE != 0
    }

    /// Publishes a keyspace event of the module class. Handlers of other modules run before this
    /// returns.
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

    /// Publishes a keyspace event of the stream class, as commands on streams do. Does nothing if
    /// they are not enabled.
    pub fn notify_stream_event(&mut self, event: &'static CStr, name: Name<'_>) {
        // SAFETY: as above.
        unsafe {
            api!(RedisModule_NotifyKeyspaceEvent(
                self.ctx,
                raw::REDISMODULE_NOTIFY_STREAM,
                event.as_ptr(),
                name.as_ptr()
            ))
        };
    }

    /// Adds a sample of `ms` milliseconds to the server's latency monitor, which keeps it if it is
    /// above the monitor's threshold.
    pub fn latency_sample(&self, event: &'static CStr, ms: u64) {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX);
        // SAFETY: the event is a C string.
        unsafe { api!(RedisModule_LatencyAddSample(event.as_ptr(), ms)) };
    }
}
