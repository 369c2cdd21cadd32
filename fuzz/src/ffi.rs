//! Stands in for the layer over the module API: arguments are slices, names
//! are bytes, and a queue is a value in no key.

use std::borrow::Cow;

/// The arguments of a command.
#[derive(Clone, Copy)]
pub struct Args<'a>(pub &'a [&'a [u8]]);

impl<'a> Args<'a> {
    /// How many there are.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// One of them.
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        self.0.get(index).copied()
    }

    /// One of them as the name of a key.
    pub fn name(self, index: usize) -> Option<Name<'a>> {
        self.get(index).map(Name)
    }
}

/// The name of a key.
#[derive(Clone, Copy)]
pub struct Name<'a>(&'a [u8]);

impl<'a> Name<'a> {
    /// Its bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }
}

/// Why a command answers an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(pub Cow<'static, str>);

impl From<&'static str> for Failure {
    fn from(text: &'static str) -> Self {
        Failure(Cow::Borrowed(text))
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Failure(Cow::Owned(text))
    }
}

/// What a value does in a key.
pub trait QueueValue: Sized + Send + 'static {
    const VERSION: u32;
    fn save(&self, block: &mut dyn FnMut(&[u8]));
    fn load(version: u32, next: &mut dyn FnMut() -> Option<Vec<u8>>) -> Result<Self, String>;
    fn rewrite(&self, record: &mut dyn FnMut(&[u8]));
    fn memory(&self) -> usize;
    fn effort(&self) -> usize;
    fn copied(&self) -> Self;
    fn digest(&self, part: &mut dyn FnMut(&[u8]));
}
