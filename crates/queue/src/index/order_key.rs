//! The sort key of a message within its group.

use crate::collections::ordered::Key;
use crate::message::score::{Score, ORDER_BITS};
use crate::Seq;

/// The bits of the send order, and of the part of the score before it.
const SEQ_BITS: u32 = 128 - 8 - ORDER_BITS;
const LOW_SCORE_BITS: u32 = 64 - SEQ_BITS;
const SEQ: Seq = (1 << SEQ_BITS) - 1;

/// A position in the order of a group: by priority, then score, then send order. It
/// is packed into 16 bytes so that comparing keys compares these in turn: 8 bits of priority, 66
/// of score and 54 of send order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderKey(u64, u64);

impl OrderKey {
    /// The key of a message. `seq` must be below 2^54.
    pub fn new(priority: i8, score: Score, seq: Seq) -> OrderKey {
        let priority = u64::from((priority as u8) ^ 0x80);
        let score = score.order();
        OrderKey(
            priority << 56 | (score >> LOW_SCORE_BITS) as u64,
            (score as u64) << SEQ_BITS | seq & SEQ,
        )
    }

    /// A key below all messages of this priority and above all of lower numbers.
    pub fn start_of(priority: i8) -> OrderKey {
        let priority = u64::from((priority as u8) ^ 0x80);
        OrderKey(priority << 56, 0)
    }

    /// The message's number.
    pub fn seq(self) -> Seq {
        self.1 & SEQ
    }

    /// The message's priority.
    pub fn priority(self) -> i8 {
        (((self.0 >> 56) as u8) ^ 0x80) as i8
    }
}

impl Key for OrderKey {
    #[inline]
    fn goes_before(&self, other: &OrderKey) -> bool {
        (self.0, self.1).goes_before(&(other.0, other.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_compare_by_priority_then_score_then_send_order() {
        let key =
            |priority, score: &str, seq| OrderKey::new(priority, Score::parse(score).unwrap(), seq);
        let sorted = [
            key(-128, "9", 9),
            key(0, "-1e300", 9),
            key(0, "-1", 9),
            key(0, "0", 1),
            key(0, "-0", 2),
            key(0, "1.5", 1),
            key(0, "9007199254740993", 7),
            key(0, "9007199254740993", SEQ),
            key(0, "9007199254740994", 0),
            key(0, "18446744073709551615", SEQ),
            key(0, "1e300", SEQ),
            key(127, "-1e300", 1),
        ];
        assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(sorted.map(OrderKey::priority)[..2], [-128, 0]);
        assert_eq!(sorted[11].priority(), 127);
        assert_eq!((sorted[5].seq(), sorted[9].seq()), (1, SEQ));
        assert!(OrderKey::start_of(0) < sorted[1] && sorted[0] < OrderKey::start_of(0));
    }
}
