//! Batches on their way: the source claims the next one while the last one is being sent.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Lane;
use crate::failure::Failure;
use crate::takeover::ends::Ends;
use crate::takeover::fault::at_source;
use crate::takeover::ledger::Entry;
use crate::takeover::peer::{Peer, Place};
use crate::takeover::record::{Bytes, Record};
use crate::takeover::script::{claim, parts, Passed, Want, SCRIPT};
use crate::takeover::sending::Job;
use crate::takeover::stop::Stop;
use crate::text::printable;
use crate::time_text::here;

/// The first and the longest wait for a target that is full, ms.
const WAITS: (u64, u64) = (100, 5000);

/// The jobs that a claim brought.
#[derive(Debug, Default)]
pub(super) struct Pulled {
    /// The jobs, packed.
    pub claimed: Vec<Bytes>,
    /// The jobs that were passed over in the place, as id and reason.
    pub passed: Passed,
}

/// A claim that is under way.
pub(super) struct Claim {
    /// How many jobs of the place are passed over.
    pub offset: u64,
    calls: usize,
}

impl Claim {
    /// Waits for the jobs, which are to be sent.
    pub(super) fn pulled(&self, ends: &mut Ends) -> Result<Pulled, Failure> {
        let mut pulled = Pulled::default();
        for reply in ends.source.replies(self.calls).map_err(at_source)? {
            let (claimed, passed) = parts(reply.map_err(at_source)?)?;
            pulled.claimed.extend(claimed);
            pulled.passed = passed;
        }
        Ok(pulled)
    }
}

/// Claimed jobs that are being sent.
pub(super) struct Batch {
    records: Vec<Record>,
    jobs: Vec<Job>,
    /// Why some of them stay, by their numbers.
    why: BTreeMap<u64, String>,
}

impl Lane {
    /// Begins to claim from a place.
    pub(super) fn claim(
        &mut self,
        ends: &mut Ends,
        place: &Place,
        offset: u64,
        want: usize,
    ) -> Result<Claim, Failure> {
        let calls = if offset == 0 {
            want.div_ceil(SCRIPT)
        } else {
            1
        };
        let want = Want {
            offset,
            count: want.min(SCRIPT),
            now: here().saturating_add_signed(self.skew),
        };
        let cmd = claim(&ends.peer, &self.keys, place, "take", &self.token, want);
        let cmds = vec![cmd; calls];
        ends.source.begin(&cmds).map_err(at_source)?;
        Ok(Claim { offset, calls })
    }

    /// Reads claimed jobs.
    pub(super) fn unpack(&self, claimed: Vec<Bytes>) -> Result<Vec<Record>, Failure> {
        let claimed = claimed.into_iter().map(Record::unpack);
        claimed.collect::<Option<_>>().ok_or_else(|| {
            let list = printable(&self.keys.claim);
            Failure::mistake(format!(
                "UNKNOWN {list}: another version of dq has claimed jobs there"
            ))
        })
    }

    /// Brings claimed jobs into the ledger, and begins to send them once those before have come. Returns how many of
    /// those have moved.
    pub(super) fn push(
        &mut self,
        ends: &mut Ends,
        peer: &dyn Peer,
        records: Vec<Record>,
        stop: &Stop,
    ) -> Result<u64, Failure> {
        ends.ledger
            .turn(&self.names.queue, &self.names.key, &self.marker);
        let mut jobs = Vec::with_capacity(records.len());
        let mut why = BTreeMap::new();
        for record in &records {
            ends.ledger.add_job(&self.marker, record);
            let commands = peer
                .translate(record, &self.names)
                .unwrap_or_else(|reason| {
                    why.insert(record.number, reason);
                    Vec::new()
                });
            jobs.push((record.number, commands));
        }
        ends.ledger.write()?;
        let moved = self.confirm(ends, stop)?;
        // A signal may have ended the wait for a full target: then those behind it wait for the next run.
        if records
            .first()
            .is_some_and(|first| first.number <= self.sent + 1)
        {
            ends.begin(&self.names.key, &self.marker, &jobs)?;
            self.sending = Some(Batch { records, jobs, why });
        }
        Ok(moved)
    }

    /// Waits until the jobs that are being sent have come, also while the target is full. Returns how many have moved.
    pub(super) fn confirm(&mut self, ends: &mut Ends, stop: &Stop) -> Result<u64, Failure> {
        let Some(Batch {
            records,
            jobs,
            mut why,
        }) = self.sending.take()
        else {
            return Ok(0);
        };
        let (mut wait, mut rest) = (WAITS.0, jobs.as_slice());
        loop {
            let sent = ends.sent(rest)?;
            self.sent = self.sent.max(sent.last);
            why.extend(
                sent.taken
                    .iter()
                    .map(|number| (*number, "ID TAKEN at the target".to_owned())),
            );
            rest = rest
                .get(rest.partition_point(|(number, _)| *number <= self.sent)..)
                .unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            if !sent.refused.is_empty() {
                let words = printable(sent.refused.as_bytes());
                self.check(&words)?;
                if stop.is_asked() {
                    break;
                }
                if wait == WAITS.0 {
                    let key = printable(&self.names.key);
                    eprintln!("dq: TARGET {key}: {words}: waiting");
                }
                ends.hold(&self.keys, &self.token)?;
                stop.sleep(Duration::from_millis(wait));
                wait = (wait * 2).min(WAITS.1);
            }
            ends.begin(&self.names.key, &self.marker, rest)?;
        }
        let mut moved = 0;
        for record in records
            .into_iter()
            .filter(|record| record.number <= self.sent)
        {
            self.window.count += 1;
            match why.remove(&record.number) {
                Some(reason) => {
                    *self.stays.entry(reason).or_default() += 1;
                    ends.ledger.add(&Entry::Stays(record.number));
                    self.window.staying.push(record.packed);
                }
                None => {
                    *self.moved.entry(record.place).or_default() += 1;
                    moved += 1;
                }
            }
        }
        Ok(moved)
    }

    /// Fails if the words of the target do not say that waiting helps.
    fn check(&self, words: &str) -> Result<(), Failure> {
        let passes = ["QUEUEFULL", "OOM", "PAUSED"];
        match passes.iter().any(|word| words.contains(word)) {
            true => Ok(()),
            false => {
                let key = printable(&self.names.key);
                Err(Failure::Refused(format!("TARGET {key}: {words}")))
            }
        }
    }
}
