//! A dictionary, with which payloads are packed and unpacked.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use zstd_safe::{CCtx, CDict, CParameter, DCtx, DDict, DParameter, FrameFormat};

/// How hard the packer tries. Higher levels take six times as long and save 2 % more.
const LEVEL: i32 = 1;

/// The number of the next dictionary of this server.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// The bytes that all dictionaries of this server take.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static UNPACKER: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
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
    /// The context refers to it.
    _prepared: CDict<'static>,
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

    /// Packs a payload into `out`, which is emptied first. Returns whether that was possible.
    pub fn pack(&self, payload: &[u8], out: &mut Vec<u8>) -> bool {
        out.clear();
        out.reserve(zstd_safe::compress_bound(payload.len()));
        PACKER.with_borrow_mut(|packer| {
            if packer
                .as_ref()
                .is_none_or(|packer| packer.number != self.number)
            {
                *packer = Packer::of(self);
            }
            let packed = packer
                .as_mut()
                .map(|packer| packer.context.compress2(out, payload));
            matches!(packed, Some(Ok(_)))
        })
    }

    /// Unpacks a payload of `len` bytes. Takes no more memory than that.
    ///
    /// `None`: `frame` is not the packed form of a payload of this length.
    pub fn unpack(&self, frame: &[u8], len: usize) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(len);
        UNPACKER.with_borrow_mut(|unpacker| {
            if unpacker.is_none() {
                let mut context = DCtx::try_create()?;
                let format = DParameter::Format(FrameFormat::Magicless);
                context.set_parameter(format).ok()?;
                *unpacker = Some(context);
            }
            let context = unpacker.as_mut()?;
            let unpacked = context.decompress_using_ddict(&mut out, frame, &self.prepared);
            unpacked.ok()
        })?;
        (out.len() == len).then_some(out)
    }
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
        Some(Packer {
            number: dictionary.number,
            context,
            _prepared: prepared,
        })
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
