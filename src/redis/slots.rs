//! Slots that Valkey is importing into this node. Their keys are already here, but another node
//! still owns them.

use super::guard::contain;
use super::{raw, Context};
use std::cell::RefCell;
use std::os::raw::{c_char, c_int, c_void};

/// `ValkeyModuleEvent_AtomicSlotMigration`. Redis uses this number for another event, whose data
/// has another layout.
const EVENT: u64 = 19;
const IMPORT_STARTED: u64 = 0;
const IMPORT_ABORTED: u64 = 2;
const IMPORT_COMPLETED: u64 = 4;

/// The option by which a module states that it handles atomic slot migration. Without it Valkey
/// refuses to migrate slots in this way.
const HANDLED: u32 = 1 << 5;

/// The first and the last slot of a range.
type Range = (c_int, c_int);

/// `ValkeyModuleAtomicSlotMigrationInfo`, version 1.
#[repr(C)]
struct Info {
    version: u64,
    job: [c_char; 41],
    ranges: *const [c_int; 2],
    len: u32,
}

thread_local! {
    static IMPORTING: RefCell<Vec<Range>> = const { RefCell::new(Vec::new()) };
}

/// Whether this server is Valkey: only Valkey has the API functions also under `ValkeyModule_`
/// names.
fn is_valkey() -> bool {
    let mut function: *mut c_void = std::ptr::null_mut();
    // SAFETY: the server writes a function pointer if it knows the name.
    let found = unsafe {
        api!(RedisModule_GetApi(
            c"ValkeyModule_SetModuleOptions".as_ptr(),
            (&raw mut function).cast()
        ))
    };
    found == raw::REDISMODULE_OK as c_int
}

/// The module option to set for slot migration, or 0. `known` are the options that this server
/// knows. On Redis the same bit has another meaning.
pub(super) fn options(known: u32) -> u32 {
    match is_valkey() {
        true => known & HANDLED,
        false => 0,
    }
}

/// Subscribes to the events of slot migration, if this server has them.
pub(super) fn subscribe(ctx: &Context) {
    if !is_valkey() {
        return;
    }
    let event = raw::RedisModuleEvent {
        id: EVENT,
        dataver: 1,
    };
    // SAFETY: the context is live. Older servers refuse; they have no atomic slot migration.
    unsafe {
        api!(RedisModule_SubscribeToServerEvent(
            ctx.as_ptr(),
            event,
            Some(changed)
        ))
    };
}

/// Whether this node is importing the slot.
pub(super) fn is_importing(slot: c_int) -> bool {
    IMPORTING.with_borrow(|ranges| {
        ranges
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&slot))
    })
}

unsafe extern "C" fn changed(
    _: *mut raw::RedisModuleCtx,
    _: raw::RedisModuleEvent,
    sub: u64,
    data: *mut c_void,
) {
    if data.is_null() || ![IMPORT_STARTED, IMPORT_ABORTED, IMPORT_COMPLETED].contains(&sub) {
        return;
    }
    contain((), || {
        // SAFETY: the data of this event has this layout, with `len` ranges.
        let ranges = unsafe {
            let info = &*data.cast::<Info>();
            match info.ranges.is_null() {
                true => &[][..],
                false => std::slice::from_raw_parts(info.ranges, info.len as usize),
            }
        };
        IMPORTING.with_borrow_mut(|importing| {
            for [first, last] in ranges {
                match sub {
                    IMPORT_STARTED => importing.push((*first, *last)),
                    _ => importing.retain(|range| *range != (*first, *last)),
                }
            }
        });
    });
}
