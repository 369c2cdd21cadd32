//! The address on which this program serves others.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

use tokio::net::TcpListener;

use crate::failure::Failure;
use crate::output::Output;

/// The address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// The address and the port.
    pub address: SocketAddr,
    /// The name that was given for the address, in lower case, if it was one.
    pub name: Option<String>,
}

impl Listen {
    /// Reads `HOST:PORT`, where the host may be a name, or `:PORT` or `PORT`, which is
    /// this machine only.
    pub fn parse(text: &str) -> Result<Listen, String> {
        if let Ok(address) = text.parse() {
            return Ok(Listen {
                address,
                name: None,
            });
        }
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let port: u16 = port
            .parse()
            .map_err(|_| "write HOST:PORT, as localhost:8377, or a port alone".to_owned())?;
        if host.is_empty() {
            let address = (Ipv4Addr::LOCALHOST, port).into();
            return Ok(Listen {
                address,
                name: None,
            });
        }
        let found = (host, port).to_socket_addrs();
        let found: Vec<_> = found.map_err(|error| format!("{host}: {error}"))?.collect();
        // If a name has addresses of both kinds, more programs reach the older kind.
        let address = found.iter().find(|address| address.is_ipv4());
        let address = address.or(found.first()).copied();
        Ok(Listen {
            address: address.ok_or_else(|| format!("{host} has no address"))?,
            name: Some(host.to_ascii_lowercase()),
        })
    }

    /// Listens, says so in the name of a command, and serves the connections until the program is
    /// ended. One thread does this; work that waits for the server of the queues may run in others.
    ///
    /// Errors: the address cannot be used.
    pub fn serve<F: Future<Output = ()>>(
        &self,
        command: &str,
        out: &mut Output,
        serve: impl FnOnce(TcpListener) -> F,
    ) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(16)
            .build()?;
        runtime.block_on(async {
            let listener = TcpListener::bind(self.address)
                .await
                .map_err(|error| Failure::mistake(format!("{}: {error}", self.address)))?;
            let address = listener.local_addr()?;
            out.line(&format!("{command} listens on http://{address}"))?;
            out.to.flush()?;
            serve(listener).await;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_of_this_machine_only() {
        for text in ["8377", ":8377", "127.0.0.1:8377", "localhost:8377"] {
            let listen = Listen::parse(text).unwrap();
            assert!(listen.address.ip().is_loopback(), "{text}");
            assert_eq!(listen.address.port(), 8377);
        }
        let named = Listen::parse("LOCALHOST:1").unwrap();
        assert_eq!(named.name.as_deref(), Some("localhost"));
        assert_eq!(
            Listen::parse("[::1]:7").unwrap().address.to_string(),
            "[::1]:7"
        );
        assert!(!Listen::parse("0.0.0.0:7")
            .unwrap()
            .address
            .ip()
            .is_loopback());
        for bad in ["", ":", "x", "localhost", "localhost:99999", "127.0.0.1"] {
            assert!(Listen::parse(bad).is_err(), "{bad}");
        }
    }
}
