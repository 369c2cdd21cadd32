//! The sort key of a message within its group.

use crate::collections::ordered::Key;
use crate::Seq;

/// A position in the order of a group: by priority, then score, then send order. It
/// is packed into 16 bytes so that comparing keys compares these in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderKey(u64, u64);

impl OrderKey {
    /// The key of a message. `seq` must be below 2^56, and `score` not NaN.
    pub fn new(priority: i8, score: f64, seq: Seq) -> OrderKey {
        let priority = u64::from((priority as u8) ^ 0x80);
        // Adding zero turns -0.0 into 0.0, so that both give the same key.
        let bits = (score + 0.0).to_bits();
        let ordered = match bits >> 63 {
            0 => bits ^ (1 << 63),
            _ => !bits,
        };
        OrderKey(
            priority << 56 | ordered >> 8,
            ordered << 56 | seq & (u64::MAX >> 8),
        )
    }

    /// A key below all messages of this priority and above all of lower numbers.
    pub fn start_of(priority: i8) -> OrderKey {
        let priority = u64::from((priority as u8) ^ 0x80);
        OrderKey(priority << 56, 0)
    }

    /// The message's number.
    pub fn seq(self) -> Seq {
        self.1 & (u64::MAX >> 8)
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
        let sorted = [
            OrderKey::new(-128, 9.0, 9),
            OrderKey::new(0, -1e300, 9),
            OrderKey::new(0, -1.0, 9),
            OrderKey::new(0, 0.0, 1),
            OrderKey::new(0, -0.0, 2),
            OrderKey::new(0, 1.5, 1),
            OrderKey::new(127, -1e300, 1),
        ];
        assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(sorted[1].priority(), 0);
        assert_eq!(sorted[0].priority(), -128);
        assert_eq!(sorted[6].priority(), 127);
        assert_eq!(sorted[5].seq(), 1);
    }
}
