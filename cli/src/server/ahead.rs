//! Commands that are on their way: the server works on them while the program does something else.

use redis::{Cmd, Value};

use super::{Link, Server};
use crate::failure::Failure;

/// The replies of commands that were begun.
#[derive(Default)]
pub struct Ahead {
    /// How many replies have not been read.
    awaited: usize,
    replies: Vec<Result<Value, Failure>>,
}

impl Server {
    /// Sends commands without waiting for their replies, which [`Server::replies`] returns. A cluster is waited for.
    pub fn begin(&mut self, cmds: &[Cmd]) -> Result<(), Failure> {
        let Link::One(connection) = &mut self.link else {
            let replies = self.pipeline(cmds)?;
            self.ahead.replies.extend(replies);
            return Ok(());
        };
        let mut packed = Vec::new();
        for cmd in cmds {
            self.scope.check(cmd)?;
            cmd.write_packed_command(&mut packed);
        }
        connection.send_packed_command(&packed)?;
        self.ahead.awaited += cmds.len();
        Ok(())
    }

    /// Waits for the replies of the commands that were begun, and returns a reply or an error for each.
    pub fn replies(&mut self) -> Result<Vec<Result<Value, Failure>>, Failure> {
        self.catch_up()?;
        Ok(std::mem::take(&mut self.ahead.replies))
    }

    /// Reads the replies that are under way, so that the next one is that of the next command.
    pub(super) fn catch_up(&mut self) -> Result<(), Failure> {
        let Link::One(connection) = &mut self.link else {
            return Ok(());
        };
        while self.ahead.awaited > 0 {
            let reply = connection.recv_response().and_then(Value::extract_error);
            self.ahead.awaited -= 1;
            match reply.map_err(Failure::from) {
                Err(failure @ Failure::Lost(_)) => return Err(failure),
                reply => self.ahead.replies.push(reply),
            }
        }
        Ok(())
    }
}
