//! Names of queues, and what follows from them: keys in Redis, URLs and ARNs.

use super::fault::Fault;

/// How names of this gateway are made.
#[derive(Debug, Clone, clap::Args)]
pub struct Names {
    /// The beginning of the keys of all queues. In a cluster with dead-letter queues, write a
    /// hash tag: '{sqs}:'
    #[arg(long, value_name = "TEXT", default_value = "sqs:", value_parser = prefix)]
    pub prefix: String,
    /// The number of the account, in the URLs and ARNs of queues
    #[arg(long, value_name = "NUMBER", default_value = "000000000000", value_parser = account)]
    pub account: String,
    /// The region, in the ARNs of queues. Clients may name any
    #[arg(long, value_name = "NAME", default_value = "us-east-1")]
    pub region: String,
    /// The beginning of the URLs of queues, if clients reach this program by another address
    /// than the one that they ask for
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
}

impl Names {
    /// Returns the key of a queue.
    pub fn key(&self, queue: &str) -> String {
        format!("{}{queue}", self.prefix)
    }

    /// Returns the queue of a key.
    pub fn of_key<'a>(&self, key: &'a str) -> Option<&'a str> {
        key.strip_prefix(&self.prefix)
    }

    /// Returns the key of something else of a queue, in the slot of the queue.
    pub fn beside(&self, queue: &str, what: &str) -> String {
        let key = self.key(queue);
        match has_tag(&key) {
            true => format!("{key}:{what}"),
            false => format!("{{{key}}}:{what}"),
        }
    }

    /// Returns the key of something of all queues. It cannot be that of a queue, because no
    /// name begins with a colon.
    pub fn common(&self, what: &str) -> String {
        format!("{}:{what}", self.prefix)
    }

    /// Returns the ARN of a queue.
    pub fn arn(&self, queue: &str) -> String {
        format!("arn:aws:sqs:{}:{}:{queue}", self.region, self.account)
    }

    /// Returns the queue of an ARN, if it is of our account. Any region is ours.
    pub fn of_arn<'a>(&self, arn: &'a str) -> Option<&'a str> {
        let parts: Vec<&str> = arn.split(':').collect();
        match parts.as_slice() {
            ["arn", _, "sqs", _, account, queue] if *account == self.account => Some(queue),
            _ => None,
        }
    }

    /// Returns the URL of a queue for a client that has reached us by `base`.
    pub fn url(&self, base: &str, queue: &str) -> String {
        let base = self.public_url.as_deref().unwrap_or(base);
        format!("{}/{}/{queue}", base.trim_end_matches('/'), self.account)
    }
}

/// Reads the beginning of the keys.
fn prefix(text: &str) -> Result<String, String> {
    match !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic()) {
        true => Ok(text.to_owned()),
        false => Err("write letters, digits and punctuation".to_owned()),
    }
}

/// Reads the number of an account.
fn account(text: &str) -> Result<String, String> {
    match text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(text.to_owned()),
        false => Err("write twelve digits".to_owned()),
    }
}

/// Returns the queue of a URL, or of a bare name.
pub fn of_url(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    url.rsplit_once('/').map_or(url, |(_, name)| name)
}

/// Returns whether the cluster knows the slot of a key by its tag.
fn has_tag(key: &str) -> bool {
    let inside = key
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'));
    inside.is_some_and(|(tag, _)| !tag.is_empty())
}

/// Checks the name of a queue that is made.
pub fn check(name: &str, fifo: bool) -> Result<(), Fault> {
    let stem = match fifo {
        true => name.strip_suffix(".fifo"),
        false => Some(name),
    };
    let is_fine = |stem: &str| {
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (1..=80).contains(&name.len()) && !stem.is_empty() && stem.chars().all(letters)
    };
    match (stem.is_some_and(is_fine), fifo) {
        (true, _) => Ok(()),
        (false, true) => Err(Fault::value(
            "The name of a FIFO queue can only include alphanumeric characters, hyphens, or \
             underscores, must end with .fifo suffix and be 1 to 80 in length",
        )),
        (false, false) => Err(Fault::value(
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::slot;

    fn names(prefix: &str) -> Names {
        Names {
            prefix: prefix.to_owned(),
            account: "000000000000".to_owned(),
            region: "us-east-1".to_owned(),
            public_url: None,
        }
    }

    #[test]
    fn what_is_beside_a_queue_is_in_its_slot() {
        for prefix in ["sqs:", "{sqs}:", "a{b}c"] {
            let names = names(prefix);
            assert_eq!(
                slot(names.key("q").as_bytes()),
                slot(names.beside("q", "attributes").as_bytes())
            );
        }
    }

    #[test]
    fn names_are_found_in_urls_and_arns() {
        let names = names("sqs:");
        assert_eq!(of_url("http://h:1/000000000000/a.fifo/"), "a.fifo");
        assert_eq!(of_url("a"), "a");
        assert_eq!(names.of_arn(&names.arn("a")), Some("a"));
        assert_eq!(
            names.of_arn("arn:aws:sqs:eu-west-1:000000000000:a"),
            Some("a")
        );
        assert_eq!(names.of_arn("arn:aws:sqs:eu-west-1:000000000001:a"), None);
        assert_eq!(names.url("http://h", "a"), "http://h/000000000000/a");
    }

    #[test]
    fn names_are_checked() {
        for (name, fifo, fine) in [
            ("a-B_1", false, true),
            ("", false, false),
            ("a.fifo", false, false),
            ("a.fifo", true, true),
            (".fifo", true, false),
            ("a", true, false),
            ("a b", false, false),
        ] {
            assert_eq!(check(name, fifo).is_ok(), fine, "{name}");
        }
        assert!(check(&"a".repeat(81), false).is_err());
    }
}
