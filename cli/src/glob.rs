//! Globs of names, in which a star stands for any bytes.

/// Returns whether a name matches a glob.
pub fn matches(glob: &[u8], name: &[u8]) -> bool {
    let mut parts = glob.split(|byte| *byte == b'*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let parts: Vec<&[u8]> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle.iter().filter(|part| !part.is_empty()) {
        match rest.windows(part.len()).position(|found| found == *part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match() {
        for (glob, name, fits) in [
            ("*", "", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("a**", "ab", true),
            ("*a*b", "xaxb", true),
            ("*a*b", "xbxa", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(
                matches(glob.as_bytes(), name.as_bytes()),
                fits,
                "{glob} {name}"
            );
        }
    }
}
