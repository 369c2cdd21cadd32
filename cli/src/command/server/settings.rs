//! The configuration of a server, as the text that it reads.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::args::{Args, PORT};
use super::programs::Programs;
use crate::failure::Failure;
use crate::secret;

/// Every operation is logged before it is answered, the log is synced each second, and
/// no policy may delete a queue. redis.conf of the sources has the reasons.
const DURABLE: &str = "\
appendonly yes
appendfsync everysec
aof-use-rdb-preamble yes
aof-load-truncated yes
save 3600 1 300 100 60 10000
";

/// Nothing is written to the disk. A first connection comes over a socket in a directory
/// of this server's own, and then gives it a port.
const EPHEMERAL: &str = "\
appendonly no
save \"\"
unixsocket dq.sock
unixsocketperm 700
";

const ALWAYS: &str = "\
maxmemory-policy noeviction
lazyfree-lazy-user-del yes
lazyfree-lazy-user-flush yes
lazyfree-lazy-server-del yes
lazyfree-lazy-expire yes
";

/// Settings that this program decides, whatever a file says: it reads the log of the
/// server, and waits for its end.
const OURS: &str = "\
daemonize no
supervised no
logfile \"\"
always-show-logo no
";

/// The configuration of a server.
pub struct Settings {
    text: String,
    password: Option<String>,
}

impl Settings {
    /// Reads the files that the command line names. The defaults come first, then the
    /// file of the user, then what the command line says.
    pub fn of(args: &Args, programs: &Programs) -> Result<Settings, Failure> {
        let password = args
            .password_file
            .as_deref()
            .map(secret::password)
            .transpose()?;
        let local = args.bind.iter().all(|address| is_loopback(address));
        if !local && password.is_none() && args.config.is_none() {
            return Err(Failure::mistake(
                "--bind lets in other machines, so clients must have a password: --password-file FILE",
            ));
        }
        let mut text = String::from(if args.ephemeral { EPHEMERAL } else { DURABLE });
        text.push_str(ALWAYS);
        let port = if args.ephemeral { 0 } else { PORT };
        line(
            &mut text,
            "bind",
            if args.ephemeral {
                "127.0.0.1"
            } else {
                "127.0.0.1 -::1"
            },
        );
        line(&mut text, "port", &port.to_string());
        if let Some(config) = &args.config {
            // The server's own error is less clear.
            fs::File::open(config).map_err(|error| about(config, &error))?;
            let config = std::path::absolute(config).map_err(|error| about(config, &error))?;
            line(
                &mut text,
                "include",
                &quoted(config.as_os_str().as_encoded_bytes()),
            );
        }
        match (args.port, args.ephemeral) {
            (_, true) => line(&mut text, "port", "0"),
            (Some(port), false) => line(&mut text, "port", &port.to_string()),
            (None, false) => {}
        }
        if !args.bind.is_empty() {
            line(&mut text, "bind", &args.bind.join(" "));
        }
        if let Some(memory) = &args.memory {
            line(&mut text, "maxmemory", memory);
        }
        if let Some(password) = &password {
            line(&mut text, "requirepass", &quoted(password.as_bytes()));
        }
        text.push_str(OURS);
        let module = programs.module.as_os_str().as_encoded_bytes();
        line(&mut text, "loadmodule", &quoted(module));
        Ok(Settings { text, password })
    }

    /// Names the directory of the server's files.
    pub fn keep_in(&mut self, directory: &Path) {
        let directory = quoted(directory.as_os_str().as_encoded_bytes());
        line(&mut self.text, "dir", &directory);
    }

    /// Returns the text that the server reads.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the password, if one is set here.
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name} {value}");
}

/// Writes bytes as the server reads them between quotes.
pub fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => {
                let _ = write!(text, "\\{}", byte as char);
            }
            b' '..=b'~' => text.push(byte as char),
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text.push('"');
    text
}

fn about(file: &Path, error: &std::io::Error) -> Failure {
    Failure::mistake(format!("{} cannot be read: {error}", file.display()))
}

fn is_loopback(address: &str) -> bool {
    let address = address.trim_start_matches('-');
    address == "localhost"
        || address
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_quoted_as_the_server_reads_them() {
        assert_eq!(quoted(b"a b\"c\\d\ne\xff"), "\"a b\\\"c\\\\d\\x0ae\\xff\"");
    }

    #[test]
    fn only_addresses_of_this_machine_are_loopback() {
        for good in ["127.0.0.1", "-::1", "localhost", "127.0.0.2"] {
            assert!(is_loopback(good), "{good}");
        }
        for bad in ["*", "0.0.0.0", "10.0.0.1", "::", "shop.example"] {
            assert!(!is_loopback(bad), "{bad}");
        }
    }
}
