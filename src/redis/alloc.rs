//! The global allocator. It takes memory from the server's allocator, so that it counts in
//! `used_memory`, `maxmemory` and MEMORY USAGE. The bindings crate has an allocator too, but that
//! one lacks `realloc`, so every growing vector would be copied.

use super::raw;
use std::alloc::{GlobalAlloc, Layout};

/// The alignment in bytes of every block of the server's allocator: 16 with the C library's or
/// Debian's jemalloc, 8 with the jemalloc that Redis and Valkey bundle.
const ALIGNMENT: usize = 8;

/// The server's allocator. It must not be used before the API is initialised.
struct ServerAlloc;

#[global_allocator]
static GLOBAL: ServerAlloc = ServerAlloc;

/// Rounds a size up so that the block has the alignment of the layout. jemalloc aligns a block to
/// the largest power of two that divides its size class, so a size that is a multiple of the
/// alignment is enough. For example, a hash table of 4 numbers needs 52 bytes aligned to 16.
const fn padded(size: usize, align: usize) -> usize {
    if align <= ALIGNMENT {
        size
    } else {
        (size + align - 1) & !(align - 1)
    }
}

// SAFETY: the blocks come from the server's allocator, which never returns
// null (it ends the process instead) and aligns as `padded` explains.
unsafe impl GlobalAlloc for ServerAlloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size is allowed.
        unsafe {
            match raw::RedisModule_Alloc {
                Some(alloc) => alloc(padded(layout.size(), layout.align())).cast(),
                None => std::process::abort(),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size is allowed.
        unsafe {
            match raw::RedisModule_Calloc {
                Some(calloc) => calloc(1, padded(layout.size(), layout.align())).cast(),
                None => std::process::abort(),
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller hands back a block of `alloc`.
        unsafe {
            match raw::RedisModule_Free {
                Some(free) => free(block.cast()),
                None => std::process::abort(),
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller hands in a block of `alloc`.
        unsafe {
            match raw::RedisModule_Realloc {
                Some(realloc) => realloc(block.cast(), padded(size, layout.align())).cast(),
                None => std::process::abort(),
            }
        }
    }
}
