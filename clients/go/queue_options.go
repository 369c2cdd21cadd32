package dq

import "time"

// The options of Create, Ensure and Alter that a message cannot have, or has with another meaning.

// MaxBackoff is the longest wait after a failure. 0 means no limit.
func MaxBackoff(span time.Duration) QueueOption { return option{"MAXBACKOFF", millis(span)} }

// Jitter is the random spread of the wait after a failure, in percent.
func Jitter(percent int) QueueOption { return option{"JITTER", count(percent)} }

// RetainCount is how many records of finished and cancelled messages are kept. 0 means no limit.
func RetainCount(n int) QueueOption { return option{"RETAINCOUNT", count(n)} }

// DeadRetain is how long dead messages are kept. 0 means for ever.
func DeadRetain(span time.Duration) QueueOption { return option{"DEADRETAIN", millis(span)} }

// DeadCount is how many dead messages are kept. 0 means all.
func DeadCount(n int) QueueOption { return option{"DEADCOUNT", count(n)} }

// Dedup is how long the id of a message stays taken after it was finished or cancelled.
func Dedup(span time.Duration) QueueOption { return option{"DEDUP", millis(span)} }

// MaxLen is the limit of pending and running messages. 0 means none.
func MaxLen(n int) QueueOption { return option{"MAXLEN", count(n)} }

// MaxRunning is the limit of leased messages over all consumers. 0 means none.
func MaxRunning(n int) QueueOption { return option{"MAXRUNNING", count(n)} }

// GroupConcurrency is how many messages of one group may be leased at once.
func GroupConcurrency(n int) QueueOption { return option{"GROUPCONCURRENCY", count(n)} }

// OnRetry is whether a group waits behind a failed message of it: "BLOCK" (the default), "SKIP", or "ALONE",
// which is BLOCK with a lease of its own for each message of a batch.
func OnRetry(what string) QueueOption { return option{"ONRETRY", what} }

// OnDead is whether a group goes on when a message of it dies: "CONTINUE" (the default) or "BLOCK". As an option of a
// message it is the effect of its death on its Parent.
func OnDead(what string) MessageOption { return option{"ONDEAD", what} }

// Fair is the measure by which groups take turns: "COUNT", the number of messages (the default), "TIME", for which
// workers held them, or "COST".
func Fair(by string) QueueOption { return option{"FAIR", by} }

// Breaker stops the deliveries of a group for open after n failures in any window of per. If the next one fails too, it
// stops them for twice as long, up to max; 0 means always for open.
func Breaker(n int, per, open, max time.Duration) QueueOption {
	words := option{"BREAKER", count(n), "PER", millis(per), "OPEN", millis(open)}
	if max > 0 {
		words = append(words, "MAX", millis(max))
	}
	return words
}

// NoBreaker removes the breaker.
func NoBreaker() QueueOption { return option{"BREAKER", "0"} }

// DeadTo is the key of the queue to which messages go that die, for these reasons, or for all if there are none. An empty
// key ends it.
func DeadTo(key string, reasons ...string) QueueOption {
	return append(option{"DEADTO", key}, reasons...)
}

// Events is the key of the stream to which each transition of a message is added. An empty key ends it.
func Events(key string) QueueOption { return option{"EVENTS", key} }

// EventsLen is how many entries that stream has at most.
func EventsLen(n int) QueueOption { return option{"EVENTSLEN", count(n)} }

// Compress is whether payloads of messages that rest are kept packed.
func Compress(on bool) QueueOption {
	if on {
		return option{"COMPRESS", "ON"}
	}
	return option{"COMPRESS", "OFF"}
}

// Sends is whether messages can be added. Without it they are refused with ErrQueueClosed, so that the queue can be
// emptied.
func Sends(on bool) QueueOption {
	if on {
		return option{"SENDS", "ON"}
	}
	return option{"SENDS", "OFF"}
}

// ManualClock makes the time of a queue begin at start, and move only by Advance: for tests.
func ManualClock(start time.Time) QueueOption {
	return option{"CLOCK", "MANUAL", unixMillis(start)}
}
