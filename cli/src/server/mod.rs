//! The connection to a server, or to all primaries of a Redis Cluster.

mod ahead;
mod endpoint;
mod line;
mod node;
mod scope;
mod sentinel;

use std::collections::BTreeMap;

use redis::cluster::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{Arg, Cmd, Connection, ConnectionLike, RedisResult, Value};

use crate::failure::Failure;
use ahead::Ahead;
pub use endpoint::Endpoint;
pub use line::Line;
pub use node::slot;
use node::Node;
pub use scope::Scope;

/// A connection that is signed in.
pub struct Server {
    place: String,
    db: i64,
    link: Link,
    scope: Scope,
    ahead: Ahead,
}

enum Link {
    One(Box<Connection>),
    Cluster(Box<Cluster>),
}

struct Cluster {
    connection: ClusterConnection,
    /// The host of the connection, used for a node that does not know its own.
    host: String,
    nodes: Vec<Node>,
    ranges: Vec<node::Range>,
}

impl Server {
    fn of_one(place: String, db: i64, connection: Connection) -> Server {
        let link = Link::One(Box::new(connection));
        Server {
            place,
            db,
            link,
            scope: Scope::default(),
            ahead: Ahead::default(),
        }
    }

    fn of_cluster(
        place: String,
        host: &str,
        connection: ClusterConnection,
    ) -> Result<Server, Failure> {
        let mut cluster = Box::new(Cluster {
            connection,
            host: host.to_owned(),
            nodes: Vec::new(),
            ranges: Vec::new(),
        });
        cluster.look()?;
        Ok(Server {
            place,
            db: 0,
            link: Link::Cluster(cluster),
            scope: Scope::default(),
            ahead: Ahead::default(),
        })
    }

    /// Returns host, port and database, for headings.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns the number of the selected database.
    pub fn db(&self) -> i64 {
        self.db
    }

    /// Returns the host and port of the server of this number.
    pub fn place_of(&self, node: usize) -> String {
        match self.nodes().get(node) {
            Some(node) => format!("{}:{}", node.host, node.port),
            None => (self.place.rsplit_once('/')).map_or(String::new(), |(at, _)| at.to_owned()),
        }
    }

    /// Lets the connection be used for these queues only, until it is told otherwise. Commands
    /// about others are refused.
    pub fn limit_to(&mut self, scope: Scope) {
        self.scope = scope;
    }

    /// Returns whether the connection may be used for a queue.
    pub fn sees(&self, queue: &[u8]) -> bool {
        self.scope.sees(queue)
    }

    /// Returns the primaries of the cluster. Empty for a single server.
    pub fn nodes(&self) -> &[Node] {
        match &self.link {
            Link::One(_) => &[],
            Link::Cluster(cluster) => &cluster.nodes,
        }
    }

    /// Asks the cluster anew for its primaries. Returns on how many servers there are
    /// queues: 1, or the number of primaries.
    pub fn look(&mut self) -> Result<usize, Failure> {
        match &mut self.link {
            Link::One(_) => Ok(1),
            Link::Cluster(cluster) => cluster.look(),
        }
    }

    /// Runs one command and returns its reply. In a cluster its first argument must be
    /// the key, or any node must be able to answer.
    pub fn call(&mut self, cmd: &Cmd) -> Result<Value, Failure> {
        self.scope.check(cmd)?;
        self.catch_up()?;
        Ok(match &mut self.link {
            Link::One(connection) => cmd.query(connection.as_mut())?,
            Link::Cluster(cluster) => cmd.query(&mut cluster.connection)?,
        })
    }

    /// Runs one command, which has no key, on the node of this number. A number that is
    /// too large, because the cluster has shrunk, is a lost connection.
    pub fn call_on(&mut self, node: usize, cmd: &Cmd) -> Result<Value, Failure> {
        self.catch_up()?;
        match &mut self.link {
            Link::One(connection) => Ok(cmd.query(connection.as_mut())?),
            Link::Cluster(cluster) => {
                let Some(Node { host, port }) = cluster.nodes.get(node).cloned() else {
                    return Err(Failure::Lost("the cluster has changed".to_owned()));
                };
                let node = SingleNodeRoutingInfo::ByAddress { host, port };
                let routing = RoutingInfo::SingleNode(node);
                let reply = cluster.connection.route_command(cmd, routing)?;
                Ok(reply.extract_error()?)
            }
        }
    }

    /// Runs several commands in one round trip to each node. Returns a reply or an
    /// error for each.
    pub fn pipeline(&mut self, cmds: &[Cmd]) -> Result<Vec<Result<Value, Failure>>, Failure> {
        if cmds.is_empty() {
            return Ok(Vec::new());
        }
        let refused: Vec<_> = cmds.iter().map(|cmd| self.scope.check(cmd).err()).collect();
        let is_allowed = |(_, refused): &(&Cmd, &Option<Failure>)| refused.is_none();
        let allowed = cmds.iter().zip(&refused).filter(is_allowed);
        let allowed: Vec<&Cmd> = allowed.map(|(cmd, _)| cmd).collect();
        self.catch_up()?;
        let replies = match &mut self.link {
            _ if allowed.is_empty() => Vec::new(),
            Link::One(connection) => trip(connection.as_mut(), allowed.into_iter())?,
            Link::Cluster(cluster) => cluster.pipeline(&allowed)?,
        };
        let mut replies = replies.into_iter();
        let reply = |refused| match refused {
            Some(failure) => Err(failure),
            None => replies
                .next()
                .unwrap_or(Ok(Value::Nil))
                .map_err(Failure::from),
        };
        Ok(refused.into_iter().map(reply).collect())
    }

    /// Subscribes to a channel and gives each message to `receive`, until that fails.
    /// There are no channels in a cluster, where each node has its own.
    pub fn subscribe(
        &mut self,
        channel: &[u8],
        mut receive: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Link::One(connection) = &mut self.link else {
            return Err(Failure::mistake("a cluster has no channels"));
        };
        // It is normal that nothing happens in a queue for days.
        connection.set_read_timeout(None)?;
        let mut channels = connection.as_pubsub();
        channels.subscribe(channel)?;
        loop {
            receive(channels.get_message()?.get_payload_bytes())?;
        }
    }
}

impl Cluster {
    fn look(&mut self) -> Result<usize, Failure> {
        let mut cmd = redis::cmd("CLUSTER");
        cmd.arg("SLOTS");
        let any = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
        let slots = self.connection.route_command(&cmd, any)?.extract_error()?;
        (self.nodes, self.ranges) = node::topology(&slots, &self.host);
        match self.nodes.len() {
            0 => Err(Failure::Lost("no node of the cluster has slots".to_owned())),
            nodes => Ok(nodes),
        }
    }

    /// Runs the commands, in one round trip to each node. Commands whose slot has moved
    /// are run once more, each alone, which follows the redirection.
    fn pipeline(&mut self, cmds: &[&Cmd]) -> Result<Vec<RedisResult<Value>>, Failure> {
        let mut by_node = BTreeMap::<usize, Vec<usize>>::new();
        for (i, cmd) in cmds.iter().enumerate() {
            // Scripts have their first key behind their own name and the number of keys.
            let is_script = cmd
                .args_iter()
                .next()
                .is_some_and(|name| key(name).starts_with(b"EVAL"));
            let at = if is_script { 3 } else { 1 };
            let slot = slot(cmd.args_iter().nth(at).map_or(b"", key));
            let owner = self
                .ranges
                .iter()
                .find(|(from, to, _)| (*from..=*to).contains(&slot));
            let node = owner.map_or(usize::MAX, |(_, _, node)| *node);
            by_node.entry(node).or_default().push(i);
        }
        let mut replies: Vec<RedisResult<Value>> = cmds.iter().map(|_| Ok(Value::Nil)).collect();
        for indices in by_node.values() {
            let ours = indices.iter().filter_map(|i| cmds.get(*i).copied());
            let got = trip(&mut self.connection, ours)?;
            for (i, reply) in indices.iter().zip(got) {
                if let Some(place) = replies.get_mut(*i) {
                    *place = reply;
                }
            }
        }
        for (reply, cmd) in replies.iter_mut().zip(cmds) {
            if matches!(reply, Err(error) if error.is_cluster_error()) {
                *reply = cmd.query(&mut self.connection);
            }
        }
        Ok(replies)
    }
}

/// Runs commands in one round trip. A connection to a cluster sends all of them to the
/// node of the first one.
fn trip<'a>(
    connection: &mut dyn ConnectionLike,
    cmds: impl Iterator<Item = &'a Cmd>,
) -> Result<Vec<RedisResult<Value>>, Failure> {
    let (mut packed, mut count) = (Vec::new(), 0);
    for cmd in cmds {
        cmd.write_packed_command(&mut packed);
        count += 1;
    }
    let replies = connection.req_packed_commands(&packed, 0, count)?;
    Ok(replies.into_iter().map(Value::extract_error).collect())
}

fn key(arg: Arg<&[u8]>) -> &[u8] {
    match arg {
        Arg::Simple(bytes) => bytes,
        _ => b"",
    }
}

/// Begins a command of the module on a queue. The caller adds more arguments.
pub fn verb(name: &str, queue: &[u8]) -> Cmd {
    let mut cmd = redis::cmd(name);
    cmd.arg(queue);
    cmd
}
