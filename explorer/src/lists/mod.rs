//! The lists of actions: each a handful of commands that meet in the life of one message.
//!
//! An action is the text of a command without `DQ.`, or one of these: CLOCK moves the clock to what
//! is due next, so a command that follows comes before the timer; MS and BACK move it by so many
//! ms; TIMER does what is due in a queue; CLOSE closes the connection that has leases of a queue;
//! STANDSTILL is a CLOCK in which the server stood still, until TURN. `@1` is the first running
//! receipt of the queue and `+8` the time of the queue and 8 ms.

mod dying;
mod flow;
mod order;
mod server;

/// A list of actions, and the world in which they begin.
#[derive(Debug)]
pub struct List {
    /// Its name, by which it is chosen.
    pub name: &'static str,
    /// The commands that come first.
    pub setup: &'static [&'static str],
    /// The actions of each state.
    pub actions: &'static [&'static str],
    /// The number of actions of the longest paths that each commit walks.
    pub depth: usize,
    /// How many due events a command processes before its own operation.
    pub most_events: u64,
    /// Times that lie further back than this count by their order only, in ms.
    pub past: u64,
    /// Whether a command that comes before the timer must do what it does behind it.
    pub is_confluent: bool,
    /// Whether this is the world of a pair of options.
    pub is_pair: bool,
}

/// The properties that most lists have in common.
pub const LIST: List = List {
    name: "",
    setup: &[],
    actions: &[],
    depth: 5,
    most_events: 512,
    past: 200,
    is_confluent: true,
    is_pair: false,
};

/// All lists but those of pairs.
pub fn all() -> impl Iterator<Item = &'static List> {
    let all = [dying::LISTS, flow::LISTS, order::LISTS, server::LISTS];
    all.into_iter().flatten()
}

/// The list with this name.
pub fn find(name: &str) -> Option<&'static List> {
    all().find(|list| list.name == name)
}
