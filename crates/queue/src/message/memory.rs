//! The memory that a message has allocated, for the estimates of a queue's size.

use super::after::Batching;
use super::extension::{Extension, Texts};
use super::kin::{Children, Kin, Parent};
use super::limited::Limited;
use super::{Choices, Header, Message, RareChoices};
use crate::collections::footprint::allocated;

impl Message {
    /// Bytes allocated for its extension, without what choices and notes have
    /// allocated.
    pub fn extension_bytes(&self) -> usize {
        const EXTENSION: usize = allocated(size_of::<Extension>());
        self.extension().map_or(0, |_| EXTENSION)
    }

    /// Bytes that it has allocated, beyond its own 48 bytes, its id and its payload.
    #[inline]
    pub fn heap_bytes(&self) -> usize {
        match self.extension() {
            Some(_) => self.extended_bytes(),
            None => 0,
        }
    }

    /// Bytes that a message with an extension has allocated. Most have none.
    fn extended_bytes(&self) -> usize {
        let mut bytes = self.extension_bytes();
        if let Some(errors) = self.extension().and_then(|ext| ext.errors.as_ref()) {
            bytes += errors.heap_bytes();
        }
        if let Some(choices) = self.choices() {
            bytes += allocated(size_of::<Choices>()) + choices.heap_bytes();
        }
        if let Some(texts) = self.texts() {
            bytes += allocated(size_of::<Texts>());
            bytes += text_bytes(&texts.error) + text_bytes(&texts.result);
            bytes += texts.left.as_ref().map_or(0, |left| left.heap_bytes());
        }
        bytes
    }
}

impl Choices {
    /// Bytes that the options have allocated.
    pub fn heap_bytes(&self) -> usize {
        const RARE: usize = allocated(size_of::<RareChoices>());
        let mut bytes = text_bytes(&self.label);
        bytes += allocated(self.headers.len() * size_of::<Header>());
        bytes += self.rare.as_ref().map_or(0, |_| RARE);
        if let Some(limited) = self.takes() {
            bytes += allocated(size_of::<Limited>()) + limited.heap_bytes();
        }
        if let Some(kin) = self.rare.as_ref().and_then(|rare| rare.kin.as_ref()) {
            bytes += allocated(size_of::<Kin>());
            bytes += kin.parent.as_ref().map_or(0, Parent::heap_bytes);
            bytes += kin.children.as_ref().map_or(0, |children| {
                allocated(size_of::<Children>()) + children.heap_bytes()
            });
        }
        if let Some(batching) = self.batching() {
            let after = batching.after.as_ref();
            bytes += allocated(size_of::<Batching>()) + text_bytes(&batching.batch);
            bytes += after.map_or(0, |after| allocated(after.batch.len()));
        }
        for (field, value) in self.headers.iter() {
            bytes += allocated(field.len()) + allocated(value.len());
        }
        bytes
    }
}

/// Bytes allocated for a text, if there is one.
fn text_bytes(text: &Option<Box<[u8]>>) -> usize {
    text.as_ref().map_or(0, |text| allocated(text.len()))
}
