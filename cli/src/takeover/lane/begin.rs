//! The begin of an import of a queue, which ends the claims of the run before.

use std::collections::BTreeMap;
use std::time::Instant;

use super::{Lane, Window};
use crate::failure::Failure;
use crate::takeover::ends::Ends;
use crate::takeover::fault::{at_source, at_target_end};
use crate::takeover::keys::{at_target, Keys};
use crate::takeover::ledger::new_id;
use crate::takeover::peer::{command, on, Names, Peer};
use crate::takeover::read::{clock, number, text, texts};
use crate::takeover::script::SCRIPT;
use crate::takeover::stop::Stop;
use crate::text::printable;
use crate::time_text::here;

impl Lane {
    /// Begins with a queue: takes the lease, makes the queue at the target, and moves what an earlier run has claimed.
    pub fn begin(
        ends: &mut Ends,
        peer: &dyn Peer,
        names: Names,
        ledger: &str,
        stop: &Stop,
    ) -> Result<Lane, Failure> {
        let keys = Keys::of(peer.stem(&names.queue));
        let token = format!("{} {ledger} {}", ends.ledger.id, new_id()?);
        // An import that is refused here leaves no lease.
        let seen = peer.look(&mut ends.source, &names).map_err(at_source)?;
        ends.hold(&keys, &token)?;
        if number(&mut ends.source, &on("EXISTS", &keys.undone)).map_err(at_source)? > 0 {
            let words = format!(
                "{}: an undo was interrupted: let it run to its end first",
                names.queue
            );
            return Err(Failure::mistake(words));
        }
        for words in &peer.prepare(&mut ends.source, &names)? {
            ends.target.call(&command(words)).map_err(at_target_end)?;
        }
        let skew = clock(&mut ends.source).map_err(at_source)? as i64 - here() as i64;
        let mut lane = Lane {
            names,
            seen,
            keys,
            moved: BTreeMap::new(),
            stays: BTreeMap::new(),
            lost: Vec::new(),
            is_paused: false,
            token,
            marker: String::new(),
            sent: 0,
            window: Window::default(),
            settling: None,
            sending: None,
            settled_at: Instant::now(),
            skew,
            passed: BTreeMap::new(),
        };
        lane.go_on(ends, peer, stop)?;
        Ok(lane)
    }

    /// Finds the run that is under way and ends its claims, or begins another one.
    fn go_on(&mut self, ends: &mut Ends, peer: &dyn Peer, stop: &Stop) -> Result<(), Failure> {
        let source = &mut ends.source;
        let old = text(
            source
                .call(on("HGET", &self.keys.state).arg("id"))
                .map_err(at_source)?,
        );
        let claimed = number(source, &on("LLEN", &self.keys.claim)).map_err(at_source)?;
        let staying = number(source, &on("LLEN", &self.keys.stays)).map_err(at_source)?;
        if let Some(id) = old {
            self.mark(&String::from_utf8_lossy(&id));
            if claimed > 0 && !self.send_claimed(ends, peer, claimed, stop)? {
                return Ok(());
            }
            self.end_marker(ends)?;
        }
        if staying > 0 {
            self.put_back(ends)?;
        }
        let id = new_id()?;
        self.mark(&id);
        self.sent = 0;
        let mut set = on("HSET", &self.keys.state);
        set.arg("id").arg(id).arg("seq").arg(0);
        ends.source.call(&set).map_err(at_source)?;
        // The source knows the run by now, so that the next one finds this marker in any case.
        ends.target
            .call(on("SET", self.marker.as_bytes()).arg(0))
            .map_err(at_target_end)?;
        Ok(())
    }

    fn mark(&mut self, id: &str) {
        self.marker = at_target(&self.names.key, "import", id);
    }

    /// Sends what an earlier run has claimed and not sent. Returns whether a signal has left nothing of it.
    fn send_claimed(
        &mut self,
        ends: &mut Ends,
        peer: &dyn Peer,
        claimed: i64,
        stop: &Stop,
    ) -> Result<bool, Failure> {
        let last = ends
            .target
            .call(&on("GET", self.marker.as_bytes()))
            .map_err(at_target_end)?;
        let Some(last) = text(last) else {
            return Err(Failure::mistake(format!(
                "ENDED {}: {claimed} claimed jobs wait in {} at the source, and the target does not know this import: is --to \
                 the server of the first run, and was it emptied?",
                self.names.queue,
                printable(&self.keys.claim)
            )));
        };
        self.sent = String::from_utf8_lossy(&last).parse().unwrap_or(0);
        let mut read = 0;
        loop {
            let mut range = on("LRANGE", &self.keys.claim);
            range.arg(read).arg(read + SCRIPT - 1);
            let claimed = texts(ends.source.call(&range).map_err(at_source)?);
            read += claimed.len();
            let is_last = claimed.is_empty();
            if !is_last {
                let records = self.unpack(claimed)?;
                self.push(ends, peer, records, stop)?;
                self.confirm(ends, stop)?;
            }
            if is_last || stop.is_asked() {
                self.settle(ends)?;
                return Ok(is_last);
            }
        }
    }

    /// Removes the marker of the run, which then sends nothing more.
    pub(super) fn end_marker(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        let others = [":taken", ":disk"].map(|name| format!("{}{name}", self.marker));
        ends.target
            .call(on("DEL", self.marker.as_bytes()).arg(&others))
            .map_err(at_target_end)?;
        Ok(())
    }
}
