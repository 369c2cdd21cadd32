//! FIND with DO: changes the messages that a search has found.

use crate::message::state::{State, StoredState};
use crate::op::{Done, FindAct};
use crate::queue::Queue;
use crate::{Millis, Seq};

impl Queue {
    /// Redrives, cancels or removes messages. Returns how many. Numbers of messages
    /// that are not there, or that this does not apply to, are passed over.
    pub(in crate::queue) fn find_do(&mut self, act: FindAct, seqs: &[Seq], now: Millis) -> Done {
        let count = match act {
            FindAct::Redrive => self.redrive_each(seqs, now),
            FindAct::Cancel => {
                let states = seqs.iter().map(|seq| self.cancel_one(*seq, now));
                let had_ended = |state: &State| matches!(state, State::Finished | State::Cancelled);
                states.flatten().filter(|state| !had_ended(state)).count() as u64
            }
            FindAct::Purge => {
                let current = seqs
                    .iter()
                    .filter_map(|seq| self.bring_up_to_date(*seq, now));
                let doomed: Vec<Seq> = current.collect();
                self.remove_each(&doomed, now)
            }
        };
        if count > 0 {
            self.changed();
        }
        Done::Count(count)
    }

    fn redrive_each(&mut self, seqs: &[Seq], now: Millis) -> u64 {
        let mut count = 0;
        for seq in seqs {
            let current = self.bring_up_to_date(*seq, now);
            if current.is_some_and(|seq| self.is_at(seq, StoredState::Dead)) {
                self.redrive_one(*seq, self.join(now));
                count += 1;
            }
        }
        self.state.totals.redriven += count;
        count
    }
}
