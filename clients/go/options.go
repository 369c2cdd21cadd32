package dq

import (
	"sort"
	"strconv"
	"time"
)

// The options of each command. One option may fit several commands, under the same word.
type (
	// SendOption is an option of Send, SendMany, GroupPush, Next and Schedule.
	SendOption interface{ sendWords() []string }
	// QueueOption is an option of Create, Alter and Ensure.
	QueueOption interface{ queueWords() []string }
	// FetchOption is an option of Fetch and Family.Fetch.
	FetchOption interface{ fetchWords() []string }
	// AckOption is an option of Ack. Effects are one, too.
	AckOption interface{ ackWords() []string }
	// NackOption is an option of Nack.
	NackOption interface{ nackWords() []string }
	// TouchOption is an option of Touch.
	TouchOption interface{ touchWords() []string }
	// DueOption says when a message is due, in Send and Reschedule.
	DueOption interface{ dueWords() []string }
	// ListOption is an option of List.
	ListOption interface{ listWords() []string }
	// FindOption is a condition of Find, RedriveFound, CancelFound and PurgeFound.
	FindOption interface{ findWords() []string }
	// ScopeOption sets the target of Purge, Pause and Resume, and the time for which Pause holds.
	ScopeOption interface{ scopeWords() []string }
	// RedriveOption says which dead messages Redrive is about.
	RedriveOption interface{ redriveWords() []string }
	// TickOption says where Tick moves a manual clock to.
	TickOption interface{ tickWords() []string }
	// GroupSetOption is a setting of a group.
	GroupSetOption interface{ groupSetWords() []string }
	// LimitOption is an option of Limit.
	LimitOption interface{ limitWords() []string }
)

// option holds the words of any option. The commands that accept it are decided by the interface that its function
// returns.
type option []string

func (o option) sendWords() []string     { return o }
func (o option) queueWords() []string    { return o }
func (o option) fetchWords() []string    { return o }
func (o option) ackWords() []string      { return o }
func (o option) nackWords() []string     { return o }
func (o option) touchWords() []string    { return o }
func (o option) dueWords() []string      { return o }
func (o option) listWords() []string     { return o }
func (o option) findWords() []string     { return o }
func (o option) scopeWords() []string    { return o }
func (o option) redriveWords() []string  { return o }
func (o option) tickWords() []string     { return o }
func (o option) limitWords() []string    { return o }
func (o option) groupSetWords() []string { return o }

// millis rounds up, so that nothing is due before its time and no length of time becomes 0.
func millis(span time.Duration) string {
	return number(int64((span + time.Millisecond - 1) / time.Millisecond))
}

// unixMillis rounds up, too.
func unixMillis(at time.Time) string {
	return number(at.Add(time.Millisecond - 1).UnixMilli())
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func count(n int) string { return strconv.Itoa(n) }

// AnyOption is an option of every command, in the types of this package.
type AnyOption interface {
	SendOption
	QueueOption
	FetchOption
	AckOption
	NackOption
	TouchOption
	DueOption
	ListOption
	FindOption
	ScopeOption
	RedriveOption
	TickOption
	GroupSetOption
	LimitOption
}

// Raw is an option in the words of the command reference, such as one of a newer server. The server refuses a wrong one.
func Raw(words ...string) AnyOption { return option(words) }

// ---- of several commands

// ID is the id of a message, by which it can be cancelled, and sent again without being added twice. In Find it is a
// pattern of ids, like that of KEYS.
func ID(id string) interface {
	SendOption
	FindOption
} {
	return option{"ID", id}
}

// Delay makes a message due this long from now. In Nack it takes the place of the backoff.
func Delay(span time.Duration) interface {
	SendOption
	DueOption
	NackOption
} {
	return option{"DELAY", millis(span)}
}

// At makes a message due at a time. A time in the past means now.
func At(t time.Time) interface {
	SendOption
	DueOption
} {
	return option{"AT", unixMillis(t)}
}

// Group is the group of a message. The messages of a group are delivered in order. In other commands than Send it
// restricts them to the group.
func Group(group string) interface {
	SendOption
	FetchOption
	ListOption
	FindOption
	ScopeOption
} {
	return option{"GROUP", group}
}

// Type is the label of a message, by which Mux chooses the handler. List and Find restrict themselves to it.
func Type(label string) interface {
	SendOption
	ListOption
	FindOption
} {
	return option{"TYPE", label}
}

// Batch is the batch that a message joins. Find restricts itself to its members.
func Batch(name string) interface {
	SendOption
	FindOption
} {
	return option{"BATCH", name}
}

// Lease is how long a consumer has a message, at least 1 ms. That of Fetch wins over that of the message, and that over
// the queue's.
func Lease(span time.Duration) interface {
	SendOption
	QueueOption
	FetchOption
} {
	return option{"LEASE", millis(span)}
}

// MessageOption is an option of a queue that a message can have, too.
type MessageOption interface {
	SendOption
	QueueOption
}

// Retries is the number of failures after which a message is delivered again. -1 means all.
func Retries(n int) MessageOption { return option{"RETRIES", count(n)} }

// MaxTimeouts is the number of leases that ran out or were lost after which a message is dead. 0 means no limit.
func MaxTimeouts(n int) MessageOption { return option{"MAXTIMEOUTS", count(n)} }

// Errors is how many of the last failed attempts of a message are kept, 0 to 100.
func Errors(n int) MessageOption { return option{"ERRORS", count(n)} }

// Kind is how the wait after a failure grows.
type Kind string

// FIXED waits are all as long as the first one; each LINEAR wait is longer than the one before by the first one; each
// EXP wait is twice as long as the one before.
const (
	Fixed  Kind = "FIXED"
	Linear Kind = "LINEAR"
	Exp    Kind = "EXP"
)

// Backoff is the wait after a failure.
func Backoff(kind Kind, span time.Duration) MessageOption {
	return option{"BACKOFF", string(kind), millis(span)}
}

// TTL makes a message dead this long after its due time if it is not finished by then. 0 means never.
func TTL(span time.Duration) MessageOption { return option{"TTL", millis(span)} }

// Retain is how long records of finished and cancelled messages are kept. 0 keeps none.
func Retain(span time.Duration) MessageOption { return option{"RETAIN", millis(span)} }

// MaxBytes is, for a queue, the limit of the payload bytes in it. Fetch ends its reply before it exceeds them.
func MaxBytes(n int64) interface {
	QueueOption
	FetchOption
} {
	return option{"MAXBYTES", number(n)}
}

// Rate is the largest number of deliveries in any window of per. NoRate removes it. Limit takes up to four.
func Rate(n int, per time.Duration) interface {
	QueueOption
	GroupSetOption
	LimitOption
} {
	return option{"RATE", count(n), "PER", millis(per)}
}

// NoRate removes a Rate. A group then has that of its queue again.
func NoRate() interface {
	QueueOption
	GroupSetOption
} {
	return option{"RATE", "0"}
}

// Count is how many messages Fetch takes or Redrive changes at most, or how many List and Find examine in each step.
func Count(n int) interface {
	FetchOption
	ListOption
	FindOption
	RedriveOption
} {
	return option{"COUNT", count(n)}
}

// Rev turns the order of List and Find around.
func Rev() interface {
	ListOption
	FindOption
} {
	return option{"REV"}
}

// Note stays with the message for its next attempt: how far the work is. An empty one removes it.
func Note(text string) interface {
	NackOption
	TouchOption
} {
	return option{"NOTE", text}
}

// Cost is the cost of a message for each of its Limits, and for its group's turn with Fair("COST"): 1 by default. In
// Ack it is what each of the messages has really taken.
func Cost(n int) interface {
	SendOption
	AckOption
} {
	return option{"COST", count(n)}
}

// Parked holds a message until a signal comes, for span at most. 0 means without end. In Nack it needs Silent.
func Parked(span time.Duration) interface {
	SendOption
	NackOption
} {
	if span > 0 {
		return option{"PARK", "FOR", millis(span)}
	}
	return option{"PARK"}
}

// ---- of a message

// Rerun makes Replace also wait for the end of a running message of this ID, and then send this one.
func Rerun() SendOption { return option{"RERUN"} }

// Children holds a message until n messages that name it as their Parent have ended.
func Children(n int) SendOption { return option{"CHILDREN", count(n)} }

// Parent is the message of which a message is a child: the key of its queue, and its id. OnDead says what the death of the
// child means for it: "HOLD" (the default) holds on, "GO" counts the child as ended, "DIE" makes the parent dead.
func Parent(key, id string) interface {
	SendOption
	FindOption
} {
	return option{"PARENT", key, id}
}

// Limits are the names of up to 8 limits that a message needs room in.
func Limits(names ...string) SendOption {
	if len(names) == 0 {
		return option(nil)
	}
	return append(option{"LIMITS", count(len(names))}, names...)
}

// Replace replaces the message of this ID if it has not been delivered, with its due time and options.
func Replace() SendOption { return option{"REPLACE"} }

// Score is the position of a message in its group. The default is its due time in Unix ms.
func Score(score float64) SendOption {
	return option{"SCORE", strconv.FormatFloat(score, 'g', -1, 64)}
}

// Priority is from -128 to 127, the lower first. The default is 0.
func Priority(n int) SendOption { return option{"PRIORITY", count(n)} }

// ExpireAt makes a message dead if it is not finished by this time. Not together with TTL.
func ExpireAt(t time.Time) SendOption { return option{"EXPIREAT", unixMillis(t)} }

// DedupID is a deduplication ID, and how long it counts from this send: until then a send with the same adds nothing, and
// returns the ID of this message.
func DedupID(id string, span time.Duration) SendOption {
	return option{"DEDUPID", id, millis(span)}
}

// MaxWait makes a message due at the latest this long after the first of the sends that replaced each other.
func MaxWait(span time.Duration) SendOption { return option{"MAXWAIT", millis(span)} }

// IfGroup adds a message only if its Group has a pending or running message in this queue.
func IfGroup() SendOption { return option{"IFGROUP"} }

// Headers are fields that are delivered with the payload.
func Headers(fields map[string]string) SendOption {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	sort.Strings(names)
	words := option{"HEADERS", count(len(names))}
	for _, name := range names {
		words = append(words, name, fields[name])
	}
	return words
}

// After holds a message until all messages of a batch have ended.
func After(batch string) SendOption { return option{"AFTER", batch} }

// OnFail is the effect of a dead message of the batch of After: "HOLD" (the default) holds on, "GO" counts it as ended,
// "DIE" makes the held message dead.
func OnFail(what string) SendOption { return option{"ONFAIL", what} }

func numbers(all []int64) []string {
	words := make([]string, len(all))
	for i, one := range all {
		words[i] = number(one)
	}
	return words
}
