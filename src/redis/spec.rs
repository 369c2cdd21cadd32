//! The description of a command, for the server and its users.

use super::{Args, CommandResult, Context};

/// What runs a command.
pub type Handler = fn(&mut Context, Args<'_>) -> CommandResult;

/// One command.
pub struct CommandSpec {
    /// Its name, in upper case.
    pub name: &'static str,
    /// What runs it.
    pub handler: Handler,
    /// The server's flags for it.
    pub flags: &'static str,
    /// Number of arguments, the name included; negative: at least so many.
    pub arity: i32,
    /// Where its keys are.
    pub keys: Keys,
    /// What it does with their values.
    pub access: Access,
    /// One sentence.
    pub summary: &'static str,
    /// Its cost.
    pub complexity: &'static str,
    /// The version that brought it.
    pub since: &'static str,
    /// Its arguments after the name.
    pub args: &'static [Arg],
}

/// Where the keys of a command are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// The first argument.
    First,
    /// The first argument says how many follow it.
    Counted,
    /// All arguments, or none; only the first where the second of three is
    /// ADVANCE or TO.
    AllOrFirst,
}

/// What a command does with the value of a key, as key permissions see it:
/// reading is handing out what producers put in, not counting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Hands out content.
    Read,
    /// Hands out numbers about it only.
    Measure,
    /// Adds to it.
    Insert,
    /// Changes it.
    Update,
    /// Changes it and hands out content.
    ReadUpdate,
    /// Takes from it.
    Delete,
}

/// One argument of a command, for COMMAND DOCS.
#[derive(Clone, Copy)]
pub struct Arg {
    /// How it is called.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// The word before it, if there is one.
    pub token: Option<&'static str>,
    /// Whether it can be left out.
    pub optional: bool,
    /// Whether it can be repeated.
    pub multiple: bool,
}

/// What an argument is.
#[derive(Clone, Copy)]
pub enum Kind {
    /// The name of a key.
    Key,
    /// Any bytes.
    Text,
    /// An integer.
    Integer,
    /// A double.
    Double,
    /// A point of time, Unix milliseconds.
    Time,
    /// The token alone.
    Word,
    /// One of these.
    OneOf(&'static [Arg]),
    /// These, in this order.
    Block(&'static [Arg]),
}

impl Arg {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Arg {
            name,
            kind,
            token: None,
            optional: false,
            multiple: false,
        }
    }

    /// The name of a key.
    pub const fn key() -> Self {
        Self::new("key", Kind::Key)
    }

    /// Any bytes.
    pub const fn text(name: &'static str) -> Self {
        Self::new(name, Kind::Text)
    }

    /// An integer.
    pub const fn integer(name: &'static str) -> Self {
        Self::new(name, Kind::Integer)
    }

    /// A double.
    pub const fn double(name: &'static str) -> Self {
        Self::new(name, Kind::Double)
    }

    /// A point of time, Unix milliseconds.
    pub const fn time(name: &'static str) -> Self {
        Self::new(name, Kind::Time)
    }

    /// A word that stands for itself.
    pub const fn word(name: &'static str, token: &'static str) -> Self {
        Self::new(name, Kind::Word).after(token)
    }

    /// One of several.
    pub const fn one_of(name: &'static str, choices: &'static [Arg]) -> Self {
        Self::new(name, Kind::OneOf(choices))
    }

    /// Several in a row.
    pub const fn block(name: &'static str, parts: &'static [Arg]) -> Self {
        Self::new(name, Kind::Block(parts))
    }

    /// With this word before it.
    pub const fn after(mut self, token: &'static str) -> Self {
        self.token = Some(token);
        self
    }

    /// May be left out.
    pub const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// May be repeated.
    pub const fn multiple(mut self) -> Self {
        self.multiple = true;
        self
    }
}
