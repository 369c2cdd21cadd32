//! The children of a message, and the tree of the flow to which it belongs.

use super::record::Record;
use crate::failure::Failure;
use crate::server::{verb, Server};

/// Maximum number of levels of a tree, and of the way from a message up to the first one.
pub const LEVELS: usize = 8;

/// Maximum number of children of one message in a tree.
const EACH: usize = 20;

/// Maximum number of messages of a tree.
const MOST: usize = 400;

/// Number of messages that are asked for in one round trip.
const CHUNK: usize = 32;

/// The queue and the id of a message.
pub type Name = (Vec<u8>, Vec<u8>);

/// Some children of a message, and the cursor of the next ones. Payloads may be among the fields.
pub type Page = (Option<Vec<u8>>, Vec<Record>);

/// Fetches up to `most` children of a message from a cursor on, page by page: a page may have
/// none. Children in queues that the connection may not be used for are left out.
pub fn fetch(
    server: &mut Server,
    (queue, id): (&[u8], &[u8]),
    from: Option<&[u8]>,
    most: usize,
) -> Result<Page, Failure> {
    let mut found: Vec<Record> = Vec::new();
    let mut cursor = from.unwrap_or(b"0").to_vec();
    loop {
        let mut cmd = verb("DQ.CHILDREN", queue);
        cmd.arg(id).arg("CURSOR").arg(&cursor);
        cmd.arg("COUNT")
            .arg(most.saturating_sub(found.len()).max(1));
        let (next, page) = Record::page(server.call(&cmd)?)?;
        let seen = page.into_iter().filter(|child| server.sees(&name(child).0));
        found.extend(seen);
        match next {
            None => return Ok((None, found)),
            next if found.len() >= most => return Ok((next, found)),
            Some(next) => cursor = next,
        }
    }
}

/// Fetches messages by their names. There is none for one that is gone or closed to the user.
pub fn messages(server: &mut Server, names: &[Name]) -> Result<Vec<Option<Record>>, Failure> {
    let mut found = Vec::with_capacity(names.len());
    for chunk in names.chunks(CHUNK) {
        let get = |(queue, id): &Name| {
            let mut cmd = verb("DQ.GET", queue);
            cmd.arg(id);
            cmd
        };
        let cmds: Vec<_> = chunk.iter().map(get).collect();
        for reply in server.pipeline(&cmds)? {
            found.push(match reply {
                Ok(reply) => Record::maybe(reply)?,
                Err(_) => None,
            });
        }
    }
    Ok(found)
}

/// Returns the name of a child in a reply of DQ.CHILDREN, or of a parent in one of DQ.GET.
pub fn name(record: &Record) -> Name {
    let bytes = |field| record.bytes(field).unwrap_or_default().to_vec();
    (bytes("key"), bytes("id"))
}

/// Returns a part of a message that is a map: `children` or `parent`. `None` if it has none.
pub fn part(message: &Record, field: &str) -> Option<Record> {
    Record::maybe(message.get(field).clone()).ok().flatten()
}

/// A message of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its queue and its id.
    pub name: Name,
    /// Its state, which is known also if the message itself is closed to the user.
    pub state: String,
    /// The message, if it could be read.
    pub message: Option<Record>,
    /// How deep it is: 0 for the first message.
    pub level: usize,
    /// Whether it has children that are not in the tree.
    pub more: bool,
}

/// Fetches the flow of a message: from the first parent on, each message followed by its
/// children. What has very many messages is cut, and says so.
pub fn tree(server: &mut Server, start: Name) -> Result<Vec<Node>, Failure> {
    let mut top = start;
    for _ in 0..LEVELS {
        let above = messages(server, std::slice::from_ref(&top))?
            .pop()
            .flatten();
        let above = above.as_ref().and_then(|message| part(message, "parent"));
        match above.map(|parent| name(&parent)) {
            Some(parent) if parent.0 != b"" && server.sees(&parent.0) => top = parent,
            _ => break,
        }
    }
    let message = messages(server, std::slice::from_ref(&top))?
        .pop()
        .flatten();
    let first = Node {
        name: top,
        state: message
            .as_ref()
            .map(|m| m.text("state"))
            .unwrap_or_default(),
        message,
        level: 0,
        more: false,
    };
    let mut nodes = Vec::new();
    below(server, first, &mut nodes)?;
    Ok(nodes)
}

/// Adds a message and those below it.
fn below(server: &mut Server, mut node: Node, nodes: &mut Vec<Node>) -> Result<(), Failure> {
    let has_children = |message: &Record| part(message, "children").is_some();
    let is_parent = node.message.as_ref().is_some_and(has_children);
    let (name, level) = (node.name.clone(), node.level + 1);
    let room = EACH.min(MOST.saturating_sub(nodes.len()));
    if !is_parent || level >= LEVELS || room == 0 {
        node.more = is_parent;
        nodes.push(node);
        return Ok(());
    }
    let (next, children) = match fetch(server, (&name.0, &name.1), None, room) {
        // The user may read the message, but not its children.
        Err(Failure::Refused(_)) => (None, Vec::new()),
        found => found?,
    };
    node.more = next.is_some();
    nodes.push(node);
    let names: Vec<Name> = children.iter().map(self::name).collect();
    let found = messages(server, &names)?;
    for ((name, child), message) in names.into_iter().zip(children).zip(found) {
        let node = Node {
            name,
            state: child.text("state"),
            message,
            level,
            more: false,
        };
        below(server, node, nodes)?;
    }
    Ok(())
}

/// Returns the counts of the children of a message, in words: "6 of 9 ended, 1 dead".
pub fn words(counts: &Record) -> String {
    let count = |field: &str| counts.count(field);
    let all = count("total");
    // A dead child holds its parent, unless it was sent with ONDEAD: it has not ended.
    let ended = ["finished", "cancelled", "removed"]
        .map(count)
        .iter()
        .sum::<u64>();
    let mut words = format!("{} of {all} ended", ended.min(all));
    for field in ["dead", "cancelled", "removed"] {
        if count(field) > 0 {
            words += &format!(", {} {field}", count(field));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;
    use crate::model::record::record;

    #[test]
    fn children_are_counted_in_words() {
        let counts = |fields: &[(&str, i64)]| {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, n)| (*name, Value::Int(*n)))
                .collect();
            words(&record(&fields))
        };
        assert_eq!(
            counts(&[
                ("total", 9),
                ("pending", 2),
                ("finished", 5),
                ("removed", 1),
                ("dead", 1)
            ]),
            "6 of 9 ended, 1 dead, 1 removed"
        );
        let more = counts(&[("total", 1), ("finished", 3)]);
        assert_eq!(more, "1 of 1 ended", "more children do no harm");
        assert_eq!(counts(&[("total", 1), ("pending", 1)]), "0 of 1 ended");
    }
}
