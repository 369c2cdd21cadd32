//! The server itself: its version, its settings for persistence, and the dangers of these.

use redis::Value;

use super::record::bytes;
use crate::failure::Failure;
use crate::server::{verb, Endpoint, Server};
use crate::text::printable;

/// The sections of INFO that are read. `dq` as a whole would add up all queues in one long command.
const SECTIONS: [&str; 6] = [
    "server",
    "memory",
    "persistence",
    "replication",
    "dq_module",
    "dq_timer",
];

/// Share of maxmemory from which memory is called short, in percent.
const SHORT: u64 = 90;

/// The figures that a server reports about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instance {
    /// Host and port, of a node of a cluster. Empty for a single server.
    pub place: String,
    fields: Vec<(String, String)>,
    /// Whether the module is loaded. `None` if the user may not ask for that.
    pub module: Option<bool>,
    /// The number of replicas that a write needs, if the user may ask for it.
    replicas_needed: Option<u64>,
    /// Whether snapshots are saved without a command, if the user may ask for it.
    saves: Option<bool>,
}

impl Instance {
    /// Returns a field of INFO, printable.
    pub fn text(&self, field: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(name, _)| name == field);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns a field of INFO that is a number.
    pub fn number(&self, field: &str) -> Option<u64> {
        self.text(field)?.parse().ok()
    }

    /// Returns whether the server has reported its figures.
    pub fn is_known(&self) -> bool {
        !self.fields.is_empty()
    }

    /// Returns the engine with its version: "valkey 8.1.1".
    pub fn engine(&self) -> Option<String> {
        let name = self.text("server_name").unwrap_or("redis");
        let version = self.text(&format!("{name}_version"));
        let version = version.or(self.text("redis_version"))?;
        Some(format!("{name} {version}"))
    }

    fn read(&mut self, section: &str) {
        for line in section.lines() {
            if let Some((name, value)) = line.trim_end().split_once(':') {
                self.fields
                    .push((name.to_owned(), printable(value.as_bytes())));
            }
        }
    }

    /// Returns the dangers for the queues, one sentence each, the worst first.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |words: String| warnings.push(words);
        let is = |field: &str, value: &str| self.text(field) == Some(value);
        if self.module == Some(false) {
            warn("the dq module is not loaded: MODULE LIST shows what is".to_owned());
        }
        if is("loading", "1") {
            warn("the server is loading its data".to_owned());
        }
        if let Some(entries) = self.number("dq_unapplied_entries").filter(|n| *n > 0) {
            warn(format!(
                "log entries that could not be applied since the start: {entries}, so queues may \
                 differ from those of the primary: see the log of the server"
            ));
        }
        if let Some(errors) = self.number("dq_internal_errors").filter(|n| *n > 0) {
            warn(format!(
                "internal errors of the module since the start: {errors}: see the log of the server"
            ));
        }
        if is("aof_last_write_status", "err") || is("rdb_last_bgsave_status", "err") {
            warn("the last save has failed: see the log of the server".to_owned());
        }
        let policy = self.text("maxmemory_policy");
        policy.and_then(dq_warnings::eviction).map(&mut warn);
        let appendonly = self.number("aof_enabled").map(|enabled| enabled != 0);
        let lost = appendonly.and_then(|on| dq_warnings::persistence(on, self.saves));
        lost.map(&mut warn);
        match (self.number("used_memory"), self.number("maxmemory")) {
            (Some(used), Some(most)) if most > 0 && used >= most / 100 * SHORT => {
                let share = used.saturating_mul(100) / most;
                warn(format!(
                    "{share} % of maxmemory is used: beyond it sends are refused"
                ));
            }
            _ => {}
        }
        if is("role", "slave") {
            warn("this is a replica, which cannot be changed".to_owned());
        } else {
            let good = self.number("min_slaves_good_slaves");
            // The server tells of good replicas only if a write needs some.
            let needed = self.replicas_needed.filter(|_| good.is_some());
            dq_warnings::replicas(good, needed).map(&mut warn);
        }
        warnings
    }
}

/// Asks every server about itself. Figures that the user may not ask for stay unknown.
pub fn all(server: &mut Server) -> Result<Vec<Instance>, Failure> {
    let nodes = server.look()?;
    let mut instances = Vec::with_capacity(nodes);
    for node in 0..nodes {
        let place = server.nodes().get(node);
        let mut instance = Instance {
            place: place.map_or(String::new(), |node| format!("{}:{}", node.host, node.port)),
            ..Instance::default()
        };
        for section in SECTIONS {
            match server.call_on(node, redis::cmd("INFO").arg(section)) {
                Ok(reply) => {
                    let text = bytes(&reply).map(String::from_utf8_lossy);
                    instance.read(&text.unwrap_or_default());
                }
                // The user may not ask for any of them.
                Err(Failure::Refused(_)) => break,
                Err(failure) => return Err(failure),
            }
        }
        if instance.is_known() {
            instance.module = Some(instance.text("dq_version").is_some());
        }
        // The server tells of good replicas only if a write needs some.
        if instance.number("min_slaves_good_slaves").is_some() {
            let needed = setting(server, node, "min-replicas-to-write")?;
            instance.replicas_needed = needed.and_then(|needed| needed.parse().ok());
        }
        if instance.number("aof_enabled") == Some(0) {
            let rules = setting(server, node, "save")?;
            instance.saves = rules.map(|rules| !rules.is_empty());
        }
        instances.push(instance);
    }
    Ok(instances)
}

/// Asks for a setting. `None` if the user may not.
fn setting(server: &mut Server, node: usize, name: &str) -> Result<Option<String>, Failure> {
    let mut cmd = redis::cmd("CONFIG");
    cmd.arg("GET").arg(name);
    match server.call_on(node, &cmd) {
        Ok(Value::Map(pairs)) => Ok(pairs
            .first()
            .and_then(|(_, value)| Some(String::from_utf8_lossy(bytes(value)?).into_owned()))),
        Err(failure @ Failure::Lost(_)) => Err(failure),
        _ => Ok(None),
    }
}

/// Returns the warnings of all servers, each with the place of its server if there are
/// several.
pub fn warnings(instances: &[Instance]) -> Vec<String> {
    let mut all = Vec::new();
    for instance in instances {
        for warning in instance.warnings() {
            all.push(match instance.place.is_empty() {
                true => warning,
                false => format!("{}: {warning}", instance.place),
            });
        }
    }
    all
}

/// Fails if the server has not loaded the module. No figure is known for a user who may
/// not call its commands.
pub fn must_have_module(server: &mut Server) -> Result<(), Failure> {
    // The key need not exist: only "unknown command" says that there is no module.
    match server.call(&verb("DQ.INFO", b"dq:is-there-a-module")) {
        Err(failure) if failure.is_about_module() => Err(failure),
        _ => Ok(()),
    }
}

/// Connects to the server of the queues, for a program that goes on without it. Returns none, and
/// says so, while the server is away, because it may come yet.
///
/// Errors: a mistake in the URL.
pub fn first_look(endpoint: &Endpoint) -> Result<Option<Server>, Failure> {
    match endpoint.connect() {
        Err(failure @ Failure::Mistake(_)) => Err(failure),
        Err(failure) => {
            eprintln!("dq: {failure}. Trying again");
            Ok(None)
        }
        Ok(mut server) => {
            if let Err(failure) = must_have_module(&mut server) {
                eprintln!("dq: {failure}");
            }
            Ok(Some(server))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(text: &str) -> Instance {
        let mut instance = Instance {
            module: Some(true),
            ..Instance::default()
        };
        instance.read(text);
        instance
    }

    #[test]
    fn a_sound_server_has_no_warnings() {
        let sound = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n\
                     aof_enabled:1\r\nmaxmemory_policy:noeviction\r\nused_memory:50\r\nmaxmemory:0\r\nrole:master\r\n";
        let sound = instance(sound);
        assert_eq!(sound.warnings(), Vec::<String>::new());
        assert_eq!(sound.engine().as_deref(), Some("valkey 8.1.1"));
        assert_eq!(instance("").warnings(), Vec::<String>::new());
    }

    #[test]
    fn each_danger_is_a_warning() {
        for (text, expected) in [
            ("aof_enabled:0", "appendonly is no"),
            ("maxmemory_policy:allkeys-lru", "allkeys-lru"),
            ("used_memory:95000\r\nmaxmemory:100000", "95 % of maxmemory"),
            ("aof_last_write_status:err", "the last save has failed"),
            ("min_slaves_good_slaves:0", "too few replicas"),
            ("role:slave", "this is a replica"),
            ("loading:1", "loading"),
            (
                "dq_unapplied_entries:1",
                "log entries that could not be applied since the start: 1,",
            ),
            (
                "dq_internal_errors:2",
                "internal errors of the module since the start: 2:",
            ),
        ] {
            let found = instance(text).warnings();
            assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
        }
        let mut bare = instance("aof_enabled:1");
        bare.module = Some(false);
        assert!(bare.warnings()[0].contains("module is not loaded"));
        bare.place = "a:1".to_owned();
        assert!(warnings(&[bare])[0].starts_with("a:1: the dq module"));
    }
}
