//! Cuts a snapshot into blocks.

use crate::codec::wire::set_number;

/// The distance between two blocks at the same address, in bytes. The server's
/// compressor keeps a table of addresses from one block to the next: at the
/// same address it would compare with the new bytes there, and guess in vain.
/// With an eighth of this distance compressing takes a tenth longer. Only a
/// queue of this size needs this much memory.
const TRACK: usize = 8 * 1024 * 1024;

/// Cuts the stream of frames into blocks.
pub(super) struct Blocks<'e> {
    size: usize,
    /// The bytes of the stream that are kept, up to about [`TRACK`].
    bytes: Vec<u8>,
    /// How many of these bytes were emitted.
    emitted: usize,
    /// The place at which the last frame begins, including its length.
    frame: usize,
    emit: &'e mut dyn FnMut(&[u8]),
}

impl<'e> Blocks<'e> {
    /// A stream that is cut into blocks of `size` bytes. Each is given to `emit`.
    pub(super) fn new(size: usize, emit: &'e mut dyn FnMut(&[u8])) -> Blocks<'e> {
        Blocks {
            size,
            bytes: Vec::new(),
            emitted: 0,
            frame: 0,
            emit,
        }
    }

    /// Begins a frame and returns the buffer to append its head to. One byte is
    /// reserved for the length of the frame.
    #[inline]
    pub(super) fn begin(&mut self) -> &mut Vec<u8> {
        self.frame = self.bytes.len();
        self.bytes.push(0);
        &mut self.bytes
    }

    /// Ends the frame after appending `tail` to it.
    #[inline]
    pub(super) fn end(&mut self, tail: &[u8]) {
        let head = self.bytes.len() - self.frame - 1;
        set_number(&mut self.bytes, self.frame, (head + tail.len()) as u64);
        let mut rest = tail;
        // Appending by pieces keeps a long payload from being copied as a
        // whole.
        while let Some((piece, later)) = rest.split_at_checked(self.size) {
            self.bytes.extend_from_slice(piece);
            self.emit_full();
            rest = later;
        }
        self.bytes.extend_from_slice(rest);
        if self.bytes.len() - self.emitted >= self.size {
            self.emit_full();
        }
    }

    fn emit_full(&mut self) {
        while let Some(block) = self.bytes.get(self.emitted..self.emitted + self.size) {
            (self.emit)(block);
            self.emitted += self.size;
        }
        if self.emitted >= TRACK {
            self.bytes.drain(..self.emitted);
            self.emitted = 0;
        }
    }

    /// Emits the bytes that are left.
    pub(super) fn flush(&mut self) {
        self.emit_full();
        match self.bytes.get(self.emitted..) {
            None | Some([]) => {}
            Some(rest) => (self.emit)(rest),
        }
        self.emitted = self.bytes.len();
    }
}
