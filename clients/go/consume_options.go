package dq

import "time"

// ---- of consuming

// Block makes Fetch wait for a message: 0 means without end.
func Block(span time.Duration) FetchOption { return option{"BLOCK", millis(span)} }

// Consumer is the name that the server shows as the holder of the messages.
func Consumer(name string) FetchOption { return option{"CONSUMER", name} }

// PerGroup lets Fetch take up to n messages in a row of each group.
func PerGroup(n int) FetchOption { return option{"PERGROUP", count(n)} }

// Acking makes Fetch ack these receipts first. Not in Family.Fetch.
func Acking(receipts ...int64) FetchOption {
	if len(receipts) == 0 {
		return option(nil)
	}
	return append(option{"ACK", count(len(receipts))}, numbers(receipts)...)
}

// Results are the results of the messages that Acking names, in the same order.
func Results(texts ...string) FetchOption {
	return append(option{"RESULTS", count(len(texts))}, texts...)
}

// Token makes Fetch give the same messages once more if their Consumer repeats it: after a lost reply. A new call needs
// a new one, of 1 to 64 bytes.
func Token(token string) FetchOption { return option{"TOKEN", token} }

// Bind makes the leases end when the connection does, grace later. Only for a client with one connection.
func Bind(grace time.Duration) FetchOption { return option{"BIND", "GRACE", millis(grace)} }

// NoAck finishes messages when they are delivered: at most once.
func NoAck() FetchOption { return option{"NOACK"} }

// Result is a text that Ack keeps with the records of the messages.
func Result(text string) AckOption { return option{"RESULT", text} }

// Error is the text that is kept with a message that failed.
func Error(text string) NackOption { return option{"ERROR", text} }

// Silent gives a message back without counting an attempt or a failure. With Delay it is snoozed.
func Silent() NackOption { return option{"SILENT"} }

// Fatal makes a message dead at once.
func Fatal() NackOption { return option{"FATAL"} }

// PauseGroup pauses the group of the message in the same step.
func PauseGroup(span time.Duration) NackOption { return option{"PAUSE", "GROUP", millis(span)} }

// PauseQueue pauses the queue in the same step.
func PauseQueue(span time.Duration) NackOption { return option{"PAUSE", "QUEUE", millis(span)} }

// ---- of inspecting and changing

// Header is a condition of Find: a field of the headers and its value.
func Header(field, value string) FindOption { return option{"HEADER", field, value} }

// ErrorLike is a condition of Find: a pattern of the last error.
func ErrorLike(pattern string) FindOption { return option{"ERROR", pattern} }

// PayloadLike is a condition of Find: a pattern of the payload.
func PayloadLike(pattern string) FindOption { return option{"PAYLOAD", pattern} }

// Since is a condition of Find: the time that orders the state is this one or later.
func Since(t time.Time) FindOption { return option{"SINCE", unixMillis(t)} }

// Until is a condition of Find: the time that orders the state is before this one.
func Until(t time.Time) FindOption { return option{"UNTIL", unixMillis(t)} }

// InState restricts Purge to a state.
func InState(state State) ScopeOption { return option{"STATE", string(state)} }

// For is how long Pause holds. Without it, until Resume.
func For(span time.Duration) ScopeOption { return option{"FOR", millis(span)} }

// Weight is how many messages a group may give in its turn.
func Weight(n int) GroupSetOption { return option{"WEIGHT", count(n)} }

// Concurrency is how many messages of a group or of a limit may be leased at once. 0 means as many as the queue says.
func Concurrency(n int) interface {
	GroupSetOption
	LimitOption
} {
	return option{"CONCURRENCY", count(n)}
}

// Weighted makes Concurrency and Rate of a limit count the costs of messages, and not the messages.
func Weighted() LimitOption { return option{"WEIGHT"} }

// IDs are the dead messages that Redrive is about.
func IDs(ids ...string) RedriveOption { return append(option{"IDS", count(len(ids))}, ids...) }

// Advance moves a manual clock by this span.
func Advance(span time.Duration) TickOption { return option{"ADVANCE", millis(span)} }

// To moves a manual clock to a time.
func To(t time.Time) TickOption { return option{"TO", unixMillis(t)} }
