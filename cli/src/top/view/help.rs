//! The text of the help.

/// The lines of the help: at most 21 of 76 columns, to fit 80x24 with the border.
pub const LINES: [&str; 21] = [
    "up/down j/k    select          PgUp PgDn Home End    further",
    "enter, right   into the family, the queue, then its groups",
    "esc, left      back",
    "g              groups: which are held, by what, until when",
    "f              which groups: held, blocked, paused, running, ready, all",
    "s              sort by trouble, name, oldest, load, dead",
    "/              only queues with a part of a name; esc ends it",
    "p              pause or resume the queue, or the selected group (asks)",
    "r              redrive all dead messages of the queue (asks)",
    "?              this help          q, ctrl-c    quit",
    "",
    "LATER     delayed, and retry: they wait for their time",
    "BLOCKED   due, but the group can give nothing now",
    "RUN       leased to a consumer",
    "OLDEST    how long the oldest due message has waited",
    "LATENESS  what the oldest one had waited, or the worst new delivery, at",
    "          each of the last samples; the newest is at the right:",
    "          ▁ below 10ms  ▂ 10ms  ▃ 0.1s  ▄ 1s",
    "          ▅ 10s  ▆ 1min  ▇ 10min  █ 1h and more",
    "",
    "any key closes this",
];
