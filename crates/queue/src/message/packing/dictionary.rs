//! A dictionary, with which payloads are packed and unpacked.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::hex::{ids, put_back, Parts};
use super::length::{put_length, take_length};
use zstd_safe::{CCtx, CDict, CParameter, DCtx, DDict, DParameter, FrameFormat};

/// How hard the packer tries. Higher levels take six times as long and save 2 % more.
const LEVEL: i32 = 1;

/// The number of the next dictionary of this server.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// The bytes that all dictionaries of this server take.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The least window of a frame, as the power of two of its bytes.
const LEAST_WINDOW: u32 = 10;
/// The bits of a frame's second byte below the window.
const WINDOW: u32 = 3;
/// The low bits in front of a block: it is the last one, and packed.
const LAST_PACKED: u8 = 1 | 2 << 1;
/// The bytes of a frame before its only block. They can be told from its length, so they are not kept.
type FrameHead = [u8; 5];

thread_local! {
    static UNPACKER: RefCell<Option<Unpacker>> = const { RefCell::new(None) };
    /// The packer, prepared for the dictionary that was used last.
    static PACKER: RefCell<Option<Packer>> = const { RefCell::new(None) };
}

/// The bytes that the dictionaries of all queues of this server take together.
pub fn dictionary_bytes() -> usize {
    TAKEN.load(Relaxed)
}

/// A dictionary. It is never changed.
pub struct Dictionary {
    text: Box<[u8]>,
    prepared: DDict<'static>,
    /// Tells it apart from all other dictionaries of this server.
    number: u64,
}

struct Packer {
    number: u64,
    context: CCtx<'static>,
    /// The ids that the dictionary has.
    common: Vec<Box<[u8]>>,
    parts: Parts,
    frame: Vec<u8>,
    /// The context refers to it.
    _prepared: CDict<'static>,
}

struct Unpacker {
    context: DCtx<'static>,
    frame: Vec<u8>,
    text: Vec<u8>,
}

impl Dictionary {
    /// The dictionary with this text; `None` if it is none.
    pub fn of(text: &[u8]) -> Option<Dictionary> {
        let dictionary = Dictionary {
            text: text.into(),
            prepared: DDict::try_create(text)?,
            number: NEXT.fetch_add(1, Relaxed),
        };
        TAKEN.fetch_add(dictionary.memory_bytes(), Relaxed);
        Some(dictionary)
    }

    /// The bytes from which it can be made again.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> usize {
        self.text.len() + self.prepared.sizeof()
    }

    /// Packs a payload into `out`, which is emptied first. `own` is the id of its message, if that is
    /// known where it is unpacked. Returns whether that was possible.
    pub fn pack(&self, payload: &[u8], own: Option<&[u8]>, out: &mut Vec<u8>) -> bool {
        out.clear();
        PACKER
            .with_borrow_mut(|packer| {
                if packer.as_ref().is_none_or(|one| one.number != self.number) {
                    *packer = Packer::of(self);
                }
                let packer = packer.as_mut();
                packer.and_then(|packer| packer.pack(payload, own, out))
            })
            .is_some()
    }

    /// Unpacks a payload of `len` bytes. Takes little more memory than that.
    ///
    /// `None`: `packed` is not the packed form of a payload of this length, whose message has the id
    /// `own`.
    pub fn unpack(&self, packed: &[u8], own: Option<&[u8]>, len: usize) -> Option<Vec<u8>> {
        UNPACKER.with_borrow_mut(|unpacker| {
            if unpacker.is_none() {
                *unpacker = Unpacker::new();
            }
            unpacker.as_mut()?.unpack(self, packed, own, len)
        })
    }
}

/// What comes before the block of a frame for a text of at most `len` bytes. `None` if the text is too
/// long for one block.
fn frame_head(len: usize, block: usize) -> Option<FrameHead> {
    let window = len.checked_next_power_of_two()?.ilog2().max(LEAST_WINDOW) - LEAST_WINDOW;
    let [low, middle, high, 0] = u32::try_from(block).ok()?.checked_shl(3)?.to_le_bytes() else {
        return None;
    };
    Some([0, (window << WINDOW) as u8, low | LAST_PACKED, middle, high])
}

impl Packer {
    fn of(dictionary: &Dictionary) -> Option<Packer> {
        let prepared = CDict::try_create(&dictionary.text, LEVEL)?;
        let mut context = CCtx::try_create()?;
        // The length and the dictionary are known from the store.
        for parameter in [
            CParameter::CompressionLevel(LEVEL),
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
            CParameter::Format(FrameFormat::Magicless),
        ] {
            context.set_parameter(parameter).ok()?;
        }
        context.ref_cdict(&prepared).ok()?;
        let mut common: Vec<Box<[u8]>> = ids(&dictionary.text).map(Into::into).collect();
        common.sort_unstable();
        Some(Packer {
            number: dictionary.number,
            context,
            common,
            parts: Parts::default(),
            frame: Vec::new(),
            _prepared: prepared,
        })
    }

    fn pack(&mut self, payload: &[u8], own: Option<&[u8]>, out: &mut Vec<u8>) -> Option<()> {
        let is_apart = self.parts.take_out(payload, own, &self.common);
        let text = match is_apart {
            true => &self.parts.text,
            false => payload,
        };
        self.frame.clear();
        self.frame.reserve(zstd_safe::compress_bound(text.len()));
        self.context.compress2(&mut self.frame, text).ok()?;
        let (head, block) = self.frame.split_at_checked(size_of::<FrameHead>())?;
        let [descriptor, _, of_block @ ..] = frame_head(text.len(), block.len())?;
        // Another window would do as well.
        if head.first() != Some(&descriptor) || !head.ends_with(&of_block) {
            // Several blocks, or one that is not packed.
            return None;
        }
        match is_apart {
            true => put_length(out, self.parts.ids.len() + 1),
            false => put_length(out, 0),
        }
        if is_apart {
            out.extend_from_slice(&self.parts.ids);
        }
        out.extend_from_slice(block);
        Some(())
    }
}

impl Unpacker {
    fn new() -> Option<Unpacker> {
        let mut context = DCtx::try_create()?;
        let format = DParameter::Format(FrameFormat::Magicless);
        context.set_parameter(format).ok()?;
        Some(Unpacker {
            context,
            frame: Vec::new(),
            text: Vec::new(),
        })
    }

    fn unpack(
        &mut self,
        dictionary: &Dictionary,
        packed: &[u8],
        own: Option<&[u8]>,
        len: usize,
    ) -> Option<Vec<u8>> {
        let (apart, rest) = take_length(packed)?;
        let (ids, block) = rest.split_at_checked(apart.saturating_sub(1))?;
        self.frame.clear();
        self.frame.extend(frame_head(len, block.len())?);
        self.frame.extend_from_slice(block);
        let (context, prepared) = (&mut self.context, &dictionary.prepared);
        if apart == 0 {
            let mut payload = Vec::with_capacity(len);
            let unpacked = context.decompress_using_ddict(&mut payload, &self.frame, prepared);
            return (unpacked.ok()? == len).then_some(payload);
        }
        self.text.clear();
        self.text.reserve(len);
        context
            .decompress_using_ddict(&mut self.text, &self.frame, prepared)
            .ok()?;
        put_back(&self.text, ids, own, len)
    }
}

impl Drop for Dictionary {
    fn drop(&mut self) {
        TAKEN.fetch_sub(self.memory_bytes(), Relaxed);
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dictionary").field(&self.text.len()).finish()
    }
}
