//! Merging two sorted sequences into one.

/// The items of two sorted sequences in order. Of equal items those of `one` come
/// first.
pub fn merged<T: Ord>(
    one: impl Iterator<Item = T>,
    other: impl Iterator<Item = T>,
) -> impl Iterator<Item = T> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(a), Some(b)) if b < a => other.next(),
        (Some(_), _) => one.next(),
        (None, _) => other.next(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_items_of_sorted_sequences_are_sorted() {
        let all = |one: &[u8], other: &[u8]| -> Vec<u8> {
            merged(one.iter().copied(), other.iter().copied()).collect()
        };
        assert_eq!(all(&[1, 4, 4, 9], &[2, 4, 5]), [1, 2, 4, 4, 4, 5, 9]);
        assert_eq!(all(&[], &[3, 7]), [3, 7]);
        assert_eq!(all(&[3, 7], &[]), [3, 7]);
    }
}
