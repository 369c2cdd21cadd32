//! Connections that are ready for use: opened, in their database, answered once.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

/// Where the server is, and what to use of it.
#[derive(Clone, Copy)]
pub struct Server {
    /// Its port on the loopback interface.
    pub port: u16,
    /// The database to select.
    pub database: u32,
}

impl Server {
    /// A blocking connection on which one command was answered already, so
    /// that the cost of accepting it lies behind. The error is a sentence.
    pub fn connect(self) -> Result<TcpStream, String> {
        let text = |error: std::io::Error| format!("port {}: {error}", self.port);
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        let select = format!("SELECT {}\r\n", self.database);
        stream.write_all(select.as_bytes()).map_err(text)?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).map_err(text)?;
        if answer == *b"+OK\r\n" {
            Ok(stream)
        } else {
            Err(format!("port {}: SELECT was refused", self.port))
        }
    }
}
