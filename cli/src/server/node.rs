//! The nodes of a Redis Cluster.

use redis::{ConnectionAddr, Value};

/// A primary of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Its host, as the cluster announces it.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl Node {
    /// Returns the address of the node, with the TLS of the address `like`.
    pub fn addr(&self, like: &ConnectionAddr) -> ConnectionAddr {
        let (host, port) = (self.host.clone(), self.port);
        match like.clone() {
            ConnectionAddr::TcpTls {
                insecure,
                tls_params,
                ..
            } => ConnectionAddr::TcpTls {
                host,
                port,
                insecure,
                tls_params,
            },
            _ => ConnectionAddr::Tcp(host, port),
        }
    }
}

/// Returns whether the reply of HELLO is that of a node of a cluster.
pub fn is_of_cluster(hello: &Value) -> bool {
    let Value::Map(fields) = hello else {
        return false;
    };
    fields
        .iter()
        .any(|(name, value)| text(name) == Some("mode") && text(value) == Some("cluster"))
}

/// The slots from the first to the second belong to the node of this number.
pub type Range = (u16, u16, usize);

/// Reads the primaries and their slots from a reply of CLUSTER SLOTS. A node that does
/// not know its own address has `host`.
pub fn topology(slots: &Value, host: &str) -> (Vec<Node>, Vec<Range>) {
    let Value::Array(ranges) = slots else {
        return Default::default();
    };
    let owned: Vec<_> = ranges.iter().filter_map(|r| range(r, host)).collect();
    let mut nodes: Vec<Node> = owned.iter().map(|(_, _, node)| node.clone()).collect();
    nodes.sort();
    nodes.dedup();
    let ranges = owned
        .iter()
        .filter_map(|(from, to, node)| Some((*from, *to, nodes.binary_search(node).ok()?)))
        .collect();
    (nodes, ranges)
}

fn range(range: &Value, host: &str) -> Option<(u16, u16, Node)> {
    let Value::Array(range) = range else {
        return None;
    };
    let Value::Array(primary) = range.get(2)? else {
        return None;
    };
    let announced = text(primary.first()?).filter(|host| !matches!(*host, "" | "?"));
    let node = Node {
        host: announced.unwrap_or(host).to_owned(),
        port: number(primary.get(1)?)?,
    };
    Some((number(range.first()?)?, number(range.get(1)?)?, node))
}

fn number(value: &Value) -> Option<u16> {
    match value {
        Value::Int(n) => u16::try_from(*n).ok(),
        _ => None,
    }
}

/// Returns the slot of a key: that of its tag in braces, if it has one.
pub fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|c| *c == b'{').and_then(|open| {
        let rest = key.get(open + 1..)?;
        let close = rest.iter().position(|c| *c == b'}')?;
        rest.get(..close).filter(|tag| !tag.is_empty())
    });
    crc16::State::<crc16::XMODEM>::calculate(tag.unwrap_or(key)) % 16_384
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        Value::Nil => Some(""),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn the_mode_of_hello_is_read() {
        let hello = |mode: &str| Value::Map(vec![(bulk("mode"), bulk(mode))]);
        assert!(is_of_cluster(&hello("cluster")));
        assert!(!is_of_cluster(&hello("standalone")));
        assert!(!is_of_cluster(&Value::Nil));
    }

    #[test]
    fn each_primary_is_named_once_and_has_its_slots() {
        let range = |from, to, host: Value, port| {
            let node = Value::Array(vec![host, Value::Int(port), bulk("id")]);
            let replica = Value::Array(vec![bulk("replica"), Value::Int(1), bulk("id")]);
            Value::Array(vec![Value::Int(from), Value::Int(to), node, replica])
        };
        let slots = Value::Array(vec![
            range(0, 99, bulk("b"), 7001),
            range(100, 199, bulk("a"), 7000),
            range(200, 299, bulk("b"), 7001),
            range(300, 399, Value::Nil, 7002),
        ]);
        let (nodes, ranges) = topology(&slots, "here");
        let nodes: Vec<_> = nodes
            .into_iter()
            .map(|node| format!("{}:{}", node.host, node.port))
            .collect();
        assert_eq!(nodes, ["a:7000", "b:7001", "here:7002"]);
        assert_eq!(
            ranges,
            [(0, 99, 1), (100, 199, 0), (200, 299, 1), (300, 399, 2)]
        );
        assert_eq!(topology(&Value::Nil, "here"), Default::default());
    }

    #[test]
    fn the_slot_is_that_of_the_tag() {
        // The expected numbers are those of CLUSTER KEYSLOT.
        for (key, expected) in [
            ("foo", 12_182),
            ("{foo}.bar", 12_182),
            ("x{foo}y{bar}", 12_182),
            ("foo{}{bar}", 8_363),
        ] {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
        assert_eq!(slot(b"{foo"), slot(b"{foo"));
    }
}
