//! Packs the payloads of messages that rest, a few in each step, and decides when a dictionary is
//! trained.
//!
//! Pages of the store wait in a row until they are swept: once each, in the order of sending. A
//! step does a bounded part of that, so that SEND never packs. The first payloads of a queue that
//! rest are samples from which a dictionary is trained. Where it saves too little, or no longer
//! what it saved at first, another is trained, ever more rarely.

use std::collections::VecDeque;
use std::sync::Arc;

use super::page::PAGE;
use super::Store;
use crate::message::body::Content;
use crate::message::given::GivenId;
use crate::message::id::Id;
use crate::message::packing::{
    dictionary_bytes, pays, Dictionary, Packed, Payload, Samples, ALL_DICTIONARIES, LARGEST,
    SMALLEST,
};
use crate::message::state::StoredState;
use crate::message::Message;
use crate::{Millis, IS_SMALL};

/// How long a message must have been here, or have to wait until it is due, in ms.
pub const REST: Millis = 5_000;
/// The bytes of payloads that samples are taken from, evenly.
const SAMPLED: u64 = if IS_SMALL { 8 << 10 } else { 1 << 20 };
/// A sample is taken of each row of payloads of this many bytes.
const SAMPLE_EVERY: u64 = SAMPLED / 512;
/// The bytes of payloads after which it is checked what a dictionary saves.
const CHECKED: u64 = SAMPLED;
/// The most bytes of payloads that are passed over before another dictionary is tried.
const MOST_PASSED: u64 = 256 * SAMPLED;
/// How long a dictionary may take to be trained, in ms. It is lost where the key is renamed meanwhile.
const TRAINING: Millis = 60_000;
/// A step ends after payloads of this many bytes.
const STEP: usize = 16 << 10;
/// A step ends after this many messages.
const STEP_MESSAGES: usize = 64;

/// What is to be packed of a store.
#[derive(Debug, Clone, Default)]
pub(super) struct Packing {
    /// The pages that are to be swept, without that of the newest message.
    pages: VecDeque<u64>,
    /// The messages of the first of them that were swept.
    swept: u64,
    phase: Phase,
    /// Bytes of all payloads that were swept.
    seen: u64,
    /// What `seen` must be before another dictionary is trained.
    next_training: u64,
    /// The bytes that are passed over when the next dictionary is of no use.
    pause: u64,
}

/// The work that is done with the payloads that are swept.
#[derive(Debug, Clone, Default)]
enum Phase {
    /// Samples are taken of them, and they stay to be swept.
    #[default]
    Starting,
    Sampling(Box<Sampling>),
    /// They wait for a dictionary, until this time (Unix ms) at most.
    Training(Millis),
    /// They are packed with the current dictionary.
    Packing(Check),
    /// They are passed over.
    Passing,
}

#[derive(Debug, Clone, Default)]
struct Sampling {
    samples: Samples,
    /// The pages of which samples were taken.
    pages: usize,
    /// Bytes of the payloads looked at.
    bytes: u64,
}

/// The bytes that a dictionary has saved.
#[derive(Debug, Clone, Default)]
struct Check {
    /// Bytes of payloads since the last check, before and after.
    before: u64,
    after: u64,
    /// The number of checks so far.
    checks: u32,
    /// The parts in a thousand that were left at the second check. The payloads before the first
    /// one are the samples, parts of which are in the dictionary.
    first: u64,
}

/// What came of a step.
#[derive(Debug)]
pub enum Step {
    /// There is more that can be done now.
    More,
    /// Nothing can be done before this time (Unix ms); `None`: nothing at all.
    Wait(Option<Millis>),
    /// A dictionary is to be trained from these samples and given to [`Store::trained`].
    Train(Box<Samples>),
}

/// Whether the payload of a message is to be packed.
enum Rests {
    Yes,
    No,
    /// This is known at this time (Unix ms).
    At(Millis),
}

fn rests(message: &Message, now: Millis) -> Rests {
    let len = message.body.payload_len();
    if message.body.is_packed() || !(SMALLEST..=LARGEST).contains(&len) {
        return Rests::No;
    }
    let is_old = now >= message.sent_at.saturating_add(REST);
    let is_late = message.due >= now.saturating_add(REST);
    match message.stored {
        StoredState::Running | StoredState::Leaving => Rests::No,
        StoredState::Delayed | StoredState::Retry if is_late => Rests::Yes,
        StoredState::Delayed | StoredState::Retry if is_old => Rests::No,
        _ if is_old => Rests::Yes,
        _ => Rests::At(message.sent_at.saturating_add(REST)),
    }
}

impl Packing {
    /// The newest message is no longer in this page.
    pub fn closed(&mut self, page: u64) {
        self.pages.push_back(page);
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> usize {
        let samples = match &self.phase {
            Phase::Sampling(sampling) => size_of::<Sampling>() + sampling.samples.memory_bytes(),
            _ => 0,
        };
        size_of::<Packing>() + self.pages.capacity() * size_of::<u64>() + samples
    }

    /// Packs payloads with the current dictionary from now on.
    pub fn begin(&mut self) {
        self.phase = Phase::Packing(Check::default());
    }

    /// Passes over payloads for twice as long as the last time.
    fn pass(&mut self) {
        self.pause = (self.pause * 2).clamp(4 * SAMPLED, MOST_PASSED);
        self.next_training = self.seen + self.pause;
        self.phase = Phase::Passing;
    }
}

impl Store {
    /// Packs payloads from now on, or packs none any more. Those that are packed stay so. O(pages)
    /// where it begins.
    pub fn set_packing(&mut self, is_on: bool) {
        if is_on == self.packing.is_some() {
            return;
        }
        self.packing = is_on.then(Box::default);
        let has_dictionary = self.current_dictionary().is_some();
        if let Some(packing) = &mut self.packing {
            let mut pages: Vec<u64> = self.pages.iter().map(|(number, _)| number).collect();
            pages.retain(|number| *number != self.newest);
            pages.sort_unstable();
            packing.pages = pages.into();
            if has_dictionary {
                packing.begin();
            }
        }
    }

    /// Whether a step may do anything, now or later. O(1).
    #[inline]
    pub fn has_unpacked(&self) -> bool {
        self.packing
            .as_ref()
            .is_some_and(|packing| !packing.pages.is_empty())
    }

    /// A message waits again, or has another payload. Its page is swept once more if that was done
    /// before. O(1).
    #[inline]
    pub fn rests_again(&mut self, seq: u64) {
        if let Some(packing) = &mut self.packing {
            let page = self.pages.get_mut(seq / PAGE);
            if let Some(page) = page.filter(|page| page.is_swept) {
                page.is_swept = false;
                packing.pages.push_back(seq / PAGE);
            }
        }
    }

    /// Goes on with a dictionary that was trained from the samples of [`Step::Train`]; `None` if
    /// there is none.
    pub fn trained(&mut self, text: Option<&[u8]>) {
        if !matches!(
            self.packing.as_deref(),
            Some(Packing {
                phase: Phase::Training(_),
                ..
            })
        ) {
            return;
        }
        let dictionary = text.and_then(Dictionary::of);
        let is_used = dictionary.is_some_and(|one| self.use_dictionary(Arc::new(one)));
        match &mut self.packing {
            Some(packing) if !is_used => packing.pass(),
            _ => {}
        }
    }

    /// Does a bounded part of what is to be packed at `now` (Unix ms).
    pub fn pack(&mut self, now: Millis) -> Step {
        let Some(mut packing) = self.packing.take() else {
            return Step::Wait(None);
        };
        let step = self.pack_with(&mut packing, now);
        self.packing = Some(packing);
        step
    }

    fn pack_with(&mut self, packing: &mut Packing, now: Millis) -> Step {
        match &mut packing.phase {
            Phase::Training(until) if now < *until => return Step::Wait(Some(*until)),
            Phase::Training(_) => packing.pass(),
            Phase::Starting => {
                packing.phase = Phase::Sampling(Box::default());
                return Step::More;
            }
            Phase::Sampling(sampling) => {
                if let Some(step) = self.sample(sampling, &packing.pages, now) {
                    return step;
                }
                let samples = std::mem::take(&mut sampling.samples);
                if dictionary_bytes() > ALL_DICTIONARIES {
                    packing.pass();
                    return Step::More;
                }
                packing.next_training = packing.seen + MOST_PASSED / 4;
                packing.phase = Phase::Training(now.saturating_add(TRAINING));
                return Step::Train(Box::new(samples));
            }
            Phase::Passing if packing.seen >= packing.next_training => {
                packing.phase = Phase::Starting;
                return Step::More;
            }
            Phase::Packing(check) if check.before >= CHECKED => {
                let left = check.after * 1000 / check.before;
                (check.before, check.after) = (0, 0);
                check.checks = check.checks.saturating_add(1);
                if check.checks <= 2 {
                    check.first = left;
                }
                if left > 875 {
                    if let Some(all) = &mut self.bodies.dictionaries {
                        all.set_current(None);
                    }
                    packing.pass();
                } else if left * 4 > check.first * 5 && packing.seen >= packing.next_training {
                    packing.phase = Phase::Starting;
                    return Step::More;
                }
            }
            _ => {}
        }
        self.sweep(packing, now)
    }

    /// Takes samples of a page. Returns `None` if there are enough.
    fn sample(&self, sampling: &mut Sampling, pages: &VecDeque<u64>, now: Millis) -> Option<Step> {
        let Some(number) = pages.get(sampling.pages) else {
            return Some(Step::Wait(None));
        };
        for seq in number * PAGE..(number + 1) * PAGE {
            let Some(message) = self.get(seq) else {
                continue;
            };
            match rests(message, now) {
                Rests::Yes => {}
                Rests::No => continue,
                Rests::At(at) => return Some(Step::Wait(Some(at))),
            }
            let before = sampling.bytes;
            sampling.bytes += message.payload_len();
            if before / SAMPLE_EVERY != sampling.bytes / SAMPLE_EVERY {
                let content = self.content(message);
                let own = content.id.map(GivenId::id);
                let own = own.as_ref().map(Id::as_bytes);
                sampling.samples.add(own, &content.payload.bytes());
            }
        }
        sampling.pages += 1;
        (sampling.bytes < SAMPLED).then_some(Step::More)
    }

    /// Packs or passes over some messages of the first page.
    fn sweep(&mut self, packing: &mut Packing, now: Millis) -> Step {
        let Some(number) = packing.pages.front().copied() else {
            return Step::Wait(None);
        };
        let (mut bytes, mut packed) = (0, Vec::new());
        let end = (packing.swept + STEP_MESSAGES as u64).min(PAGE);
        for place in packing.swept..end {
            let seq = number * PAGE + place;
            let rests = self
                .get(seq)
                .map_or(Rests::No, |message| rests(message, now));
            match rests {
                Rests::Yes => {
                    let before = self.get(seq).map_or(0, Message::payload_len);
                    packing.seen += before;
                    if let Phase::Packing(check) = &mut packing.phase {
                        bytes += before as usize;
                        check.before += before;
                        check.after += self.pack_one(seq, &mut packed).unwrap_or(before);
                    }
                }
                Rests::No => {}
                Rests::At(at) => {
                    packing.swept = place;
                    return Step::Wait(Some(at));
                }
            }
            packing.swept = place + 1;
            if bytes >= STEP {
                break;
            }
        }
        if packing.swept == PAGE {
            packing.swept = 0;
            packing.pages.pop_front();
            if let Some(page) = self.pages.get_mut(number) {
                page.is_swept = true;
            }
            if packing.pages.is_empty() {
                packing.pages = VecDeque::new();
            }
        }
        Step::More
    }

    /// Packs the payload of a message with the current dictionary. Returns the bytes that it takes
    /// then; `None` if it stays as it is.
    fn pack_one(&mut self, seq: u64, packed: &mut Vec<u8>) -> Option<u64> {
        let (number, page) = (self.bodies.dictionaries.as_ref()?.current?, seq / PAGE);
        let dictionary = Arc::clone(self.current_dictionary()?);
        let message = self.get(seq)?;
        let (body, id_len) = (message.body, message.given_id_len());
        let content = self.content(message);
        let len = content.payload.len();
        let id = content.id.map(|id| id.id().to_box());
        let is_smaller = dictionary.pack(&content.payload.bytes(), id.as_deref(), packed)
            && pays(packed.len(), len);
        if !is_smaller {
            return None;
        }
        let content = Content {
            id: id.as_deref().map(GivenId::Text),
            payload: Payload::Packed(Packed {
                bytes: packed,
                own: id.as_deref().map(GivenId::Text),
                len,
                number,
                dictionary: &dictionary,
            }),
        };
        // Adding it first keeps its dictionary in use.
        let added = self.bodies.add(page, content);
        self.bodies.remove(body, id_len);
        self.get_mut(seq)?.body = added;
        self.tidy();
        Some(packed.len() as u64)
    }
}
