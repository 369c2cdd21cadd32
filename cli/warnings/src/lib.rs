//! The warnings of dangers for the queues of a server.
//!
//! The module writes these sentences to the log of its server, and the program `dq` shows them. They
//! stand here alone, so both say the same.

#![forbid(unsafe_code)]

/// Returns the danger of a `maxmemory-policy`. `None` if it evicts nothing.
pub fn eviction(policy: &str) -> Option<String> {
    let what = match policy {
        "noeviction" => return None,
        // These policies take only keys that expire at some time.
        policy if policy.starts_with("volatile-") => "queues with an EXPIRE",
        _ => "whole queues",
    };
    Some(format!(
        "maxmemory-policy is {policy}, so {what} can be evicted: set noeviction"
    ))
}

/// Returns the danger of the way in which a server keeps its data on disk: whether it
/// writes the append-only file, and whether it saves snapshots on its own, if that is
/// known.
pub fn persistence(appendonly: bool, saves: Option<bool>) -> Option<String> {
    let lost = match (appendonly, saves) {
        (true, _) => return None,
        (false, Some(false)) => " and nothing is saved by itself, so a restart can lose all queues",
        (false, _) => ", so a crash loses what came since the last snapshot",
    };
    Some(format!("appendonly is no{lost}: set appendonly yes"))
}

/// Returns the danger of the replicas of a primary: how many are good, and how many a write
/// needs, if that is known. A server tells of good ones only if a write needs some.
pub fn replicas(good: Option<u64>, needed: Option<u64>) -> Option<String> {
    match (good, needed) {
        (_, Some(0)) => None,
        (good, Some(needed)) if good.unwrap_or(0) < needed => Some(format!(
            "{} of {needed} replicas that a write needs are there: writes are refused",
            good.unwrap_or(0)
        )),
        (Some(0), None) => {
            Some("too few replicas are there for a write: writes are refused".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_evicts_is_a_danger_to_what_it_takes() {
        assert_eq!(eviction("noeviction"), None);
        let all = eviction("allkeys-lru").unwrap();
        assert!(all.contains("is allkeys-lru, so whole queues"), "{all}");
        let some = eviction("volatile-ttl").unwrap();
        assert!(some.contains("so queues with an EXPIRE"), "{some}");
    }

    #[test]
    fn without_an_append_only_file_something_is_lost() {
        assert_eq!(persistence(true, Some(false)), None);
        for (saves, lost) in [
            (None, "no, so a crash loses"),
            (Some(true), "no, so a crash loses"),
            (
                Some(false),
                "no and nothing is saved by itself, so a restart",
            ),
        ] {
            let words = persistence(false, saves).unwrap();
            assert!(words.contains(lost), "{words}");
        }
    }

    #[test]
    fn too_few_replicas_are_told_with_their_number() {
        assert_eq!(replicas(None, None), None);
        assert_eq!(replicas(Some(1), Some(1)), None);
        assert_eq!(replicas(None, Some(0)), None);
        assert_eq!(replicas(Some(1), None), None);
        let words = replicas(Some(1), Some(2)).unwrap();
        assert!(words.starts_with("1 of 2 replicas"), "{words}");
        assert!(replicas(Some(0), None).unwrap().contains("too few"));
    }
}
