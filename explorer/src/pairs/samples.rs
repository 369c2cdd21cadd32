//! A value for each option of a message and of a queue, and what the option needs to have an effect.

/// An option with a value.
#[derive(Debug)]
pub struct Sample {
    /// The option and its value, as in a command.
    pub text: &'static str,
    /// The options without which it is an error, or means nothing.
    pub needs: &'static [&'static str],
}

const fn alone(text: &'static str) -> Sample {
    Sample { text, needs: &[] }
}

const fn with(text: &'static str, needs: &'static [&'static str]) -> Sample {
    Sample { text, needs }
}

impl Sample {
    /// The name of the option.
    pub fn name(&self) -> &'static str {
        self.text.split(' ').next().unwrap_or_default()
    }
}

/// The options of a message.
pub const OF_MESSAGES: &[Sample] = &[
    alone("ID a"),
    with("REPLACE", &["ID"]),
    with("RERUN", &["ID", "REPLACE"]),
    alone("DEDUPID d 6"),
    alone("DELAY 4"),
    alone("AT +6"),
    alone("GROUP g"),
    with("SCORE 1", &["GROUP"]),
    alone("PRIORITY -1"),
    alone("LEASE 6"),
    alone("RETRIES 0"),
    alone("BACKOFF FIXED 2"),
    alone("TTL 6"),
    alone("TYPE t"),
    alone("HEADERS 1 f w"),
    alone("RETAIN 6"),
    alone("EXPIREAT +6"),
    with("MAXWAIT 3", &["ID", "REPLACE"]),
    alone("MAXTIMEOUTS 1"),
    alone("ERRORS 1"),
    with("IFGROUP", &["GROUP"]),
    alone("BATCH x"),
    alone("AFTER y"),
    with("ONFAIL DIE", &["AFTER"]),
    alone("LIMITS 1 l"),
    with("COST 2", &["LIMITS"]),
    with("PARK", &["ID"]),
    with("FOR 6", &["ID", "PARK"]),
    alone("PARENT p p"),
    with("ONDEAD DIE", &["PARENT"]),
    with("CHILDREN 1", &["ID"]),
];

/// The options of a queue.
pub const OF_QUEUES: &[Sample] = &[
    alone("LEASE 6"),
    alone("RETRIES 0"),
    alone("BACKOFF FIXED 4"),
    with("MAXBACKOFF 3", &["BACKOFF"]),
    with("JITTER 50", &["BACKOFF"]),
    alone("TTL 6"),
    alone("RETAIN 6"),
    with("RETAINCOUNT 1", &["RETAIN"]),
    alone("DEADRETAIN 6"),
    alone("DEADCOUNT 1"),
    alone("DEDUP 6"),
    alone("MAXLEN 1"),
    alone("MAXBYTES 1"),
    alone("MAXRUNNING 1"),
    alone("RATE 1 PER 6"),
    alone("GROUPCONCURRENCY 2"),
    alone("ONRETRY SKIP"),
    alone("ONRETRY ALONE"),
    alone("ONDEAD BLOCK"),
    alone("BREAKER 1 PER 20 OPEN 6 MAX 12"),
    alone("MAXTIMEOUTS 1"),
    alone("ERRORS 1"),
    alone("DEADTO d"),
    alone("EVENTS s"),
    with("EVENTSLEN 5", &["EVENTS"]),
    alone("FAIR TIME"),
    alone("SENDS OFF"),
    alone("COMPRESS ON"),
    alone("CLOCK MANUAL 1000"),
];
