//! Opens connections that are ready for use: the database is selected.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

/// The server to connect to, and the database to use.
#[derive(Clone, Copy)]
pub struct Server {
    /// Its port on the loopback interface.
    pub port: u16,
    /// The database to select.
    pub database: u32,
}

impl Server {
    /// Opens a blocking connection. The server has already answered SELECT on it, so the cost of
    /// accepting the connection is not measured. The error is a sentence.
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
