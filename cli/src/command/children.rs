//! `dq children`: the children of a message, and their states.

use serde_json::json;

use super::{about, json, must_exist};
use crate::bounds;
use crate::failure::Failure;
use crate::json::name;
use crate::model::children::{self, part, Node};
use crate::model::coded;
use crate::output::Output;
use crate::server::Server;
use crate::table::Table;
use crate::text::printable;

/// Options of `dq children`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The queue's key
    queue: String,
    /// The id of the parent
    id: String,
    /// How many children at most
    #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(bounds::COUNT.range()))]
    count: u64,
    /// The whole flow to which the message belongs, from its first parent on, up to 8 levels
    #[arg(long)]
    tree: bool,
}

/// Prints the children.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    must_exist(server, &args.queue)?;
    let (queue, id) = (args.queue.as_bytes(), args.id.as_bytes());
    let refused = |failure| about(&args.queue, failure);
    if args.tree {
        let nodes = children::tree(server, (queue.to_vec(), id.to_vec())).map_err(refused)?;
        return tree(&nodes, out);
    }
    let found = children::fetch(server, (queue, id), None, args.count as usize);
    let (next, children) = found.map_err(refused)?;
    if out.json {
        return out.json(&json(&children));
    }
    let mut table = Table::new(&["QUEUE", "ID", "STATE", "RESULT", "ERROR"]);
    for one in &children {
        let fields = ["key", "id", "state", "result", "error"];
        let one = coded::texts(one.bytes("key").unwrap_or_default(), one);
        table.row(fields.map(|field| one.text(field)).into());
    }
    out.table(&table, "it has no children, or they have left no record")?;
    out.rest(next.is_some(), args.count)
}

/// Prints a flow: each message is followed by its children, which stand further to the right.
fn tree(nodes: &[Node], out: &mut Output) -> Result<(), Failure> {
    if out.json {
        let one = |node: &Node| {
            json!({
                "queue": name(&node.name.0), "id": name(&node.name.1), "state": node.state,
                "level": node.level, "cut": node.more,
            })
        };
        return out.json(&nodes.iter().map(one).collect());
    }
    let mut table = Table::new(&["ID", "QUEUE", "STATE", "CHILDREN"]);
    for node in nodes {
        let counts = node
            .message
            .as_ref()
            .and_then(|message| part(message, "children"));
        let more = if node.more { ", not all shown" } else { "" };
        table.row(vec![
            format!("{}{}", "  ".repeat(node.level), printable(&node.name.1)),
            printable(&node.name.0),
            node.state.clone(),
            counts
                .map(|counts| children::words(&counts) + more)
                .unwrap_or_default(),
        ]);
    }
    out.table(&table, "there is no such message")
}
