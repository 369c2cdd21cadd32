//! Connections that are ready for use: open, in their database, and answered once.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

/// The address of the server, and a database of it.
#[derive(Clone, Copy)]
pub struct Server {
    /// The port on the loopback interface.
    pub port: u16,
    /// The database to select.
    pub database: u32,
}

impl Server {
    /// Opens a blocking connection. One command has been answered on it, so that
    /// the server's cost of accepting it is not part of the measurement.
    ///
    /// # Errors
    /// A sentence that names the port.
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
