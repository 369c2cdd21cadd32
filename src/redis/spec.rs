//! Descriptions of commands, for the server and for COMMAND DOCS.

use super::{Args, CommandResult, Context};

/// A function that runs a command.
pub type Handler = fn(&mut Context, Args<'_>) -> CommandResult;

/// The description of one command.
pub struct CommandSpec {
    /// Its name, in upper case.
    pub name: &'static str,
    /// The function that runs it.
    pub handler: Handler,
    /// Its flags, separated by spaces, as RedisModule_CreateCommand takes them.
    pub flags: &'static str,
    /// The place of its keys among the arguments.
    pub keys: Keys,
    /// The access of the command to the values of its keys.
    pub access: Access,
    /// The effect of the command, in one sentence.
    pub summary: &'static str,
    /// Its cost in O notation.
    pub complexity: &'static str,
    /// Its arguments after the name.
    pub args: &'static [Arg],
}

impl CommandSpec {
    /// The number of arguments including the name. Negative: at least that number.
    pub fn arity(&self) -> i32 {
        let least = 1 + count_words(self.args, false);
        match least == 1 + count_words(self.args, true) {
            true => least,
            false => -least,
        }
    }
}

/// The number of words of these arguments. With `all`, optional ones count, and those that can be
/// repeated count twice.
fn count_words(args: &[Arg], all: bool) -> i32 {
    let counted = args.iter().filter(|arg| all || !arg.optional);
    let words = counted.map(|arg| {
        let values = match arg.kind {
            Kind::Word => 0,
            Kind::OneOf(choices) => {
                let each = choices.iter().map(|choice| count_words(&[*choice], all));
                if all { each.max() } else { each.min() }.unwrap_or(0)
            }
            Kind::Block(parts) => count_words(parts, all),
            _ => 1,
        };
        let times = if all && arg.multiple { 2 } else { 1 };
        i32::from(arg.token.is_some()) + values * times
    });
    words.sum()
}

/// The place of the keys of a command among its arguments.
#[derive(Debug, Clone, Copy)]
pub enum Keys {
    /// The command has no keys.
    None,
    /// The first argument.
    First,
    /// The first argument is the number of keys, and the keys follow it.
    Counted,
    /// The keys are every other argument, from the first on.
    Pairs,
    /// The keys are the first argument, and those that the function finds: it gets the arguments
    /// after the name, and returns the positions of keys among them, with its access to each.
    FirstAnd(fn(&[&[u8]]) -> Positions),
    /// The keys are all arguments, of which there may be none. But only the first, if there are
    /// three and the second is ADVANCE or TO.
    AllOrFirst,
}

/// Positions of keys among the arguments after the name of a command, and its access to each.
pub type Positions = Vec<(usize, Access)>;

/// The access of a command to the value of a key, in the terms of key permissions. Returning
/// what producers have put in is reading; counting it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Returns content.
    Read,
    /// Returns only numbers about the content.
    Measure,
    /// Adds content.
    Insert,
    /// Changes content.
    Update,
    /// Changes and returns content.
    ReadUpdate,
    /// Removes content.
    Delete,
}

/// One argument of a command, for COMMAND DOCS.
#[derive(Clone, Copy)]
pub struct Arg {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The token before it, if there is one.
    pub token: Option<&'static str>,
    /// Whether it is optional.
    pub optional: bool,
    /// Whether it can be repeated.
    pub multiple: bool,
    /// The arguments that it may stand for, of which errors name the nearest.
    pub hints: &'static [Arg],
}

/// The type of an argument.
#[derive(Clone, Copy)]
pub enum Kind {
    /// The name of a key.
    Key,
    /// The argument may have any bytes.
    Text,
    /// An integer.
    Integer,
    /// A double.
    Double,
    /// A time in Unix milliseconds.
    Time,
    /// A token without a value.
    Word,
    /// The argument is one of these.
    OneOf(&'static [Arg]),
    /// The argument consists of these, in this order.
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
            hints: &[],
        }
    }

    /// The name of a key.
    pub const fn key() -> Self {
        Self::new("key", Kind::Key)
    }

    /// The name of a key that is not that of a queue.
    pub const fn key_of(name: &'static str) -> Self {
        Self::new(name, Kind::Key)
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

    /// A time in Unix milliseconds.
    pub const fn time(name: &'static str) -> Self {
        Self::new(name, Kind::Time)
    }

    /// A token without a value.
    pub const fn word(name: &'static str, token: &'static str) -> Self {
        Self::new(name, Kind::Word).after(token)
    }

    /// One of several arguments.
    pub const fn one_of(name: &'static str, choices: &'static [Arg]) -> Self {
        Self::new(name, Kind::OneOf(choices))
    }

    /// Several arguments, in this order.
    pub const fn block(name: &'static str, parts: &'static [Arg]) -> Self {
        Self::new(name, Kind::Block(parts))
    }

    /// Puts this token before the argument.
    pub const fn after(mut self, token: &'static str) -> Self {
        self.token = Some(token);
        self
    }

    /// Says which arguments it may stand for.
    pub const fn one_of_these(mut self, hints: &'static [Arg]) -> Self {
        self.hints = hints;
        self
    }

    /// Makes the argument optional.
    pub const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Allows the argument to be repeated.
    pub const fn multiple(mut self) -> Self {
        self.multiple = true;
        self
    }
}
