package dq

import (
	"strconv"
	"time"
)

// State is a state of a message.
type State string

// The states. Delayed, Ready, Blocked, Retrying and Held are pending; Finished, Dead and Cancelled have ended.
const (
	Delayed   State = "delayed"
	Ready     State = "ready"
	Blocked   State = "blocked"
	Retrying  State = "retry"
	Held      State = "held"
	Running   State = "running"
	Finished  State = "finished"
	Dead      State = "dead"
	Cancelled State = "cancelled"
)

// Record is a message as Get, List, Find and Peek show it. A field that does not apply is empty: a zero time, a nil
// pointer.
type Record struct {
	ID          string
	Status      string
	State       State
	Payload     []byte
	Attempt     int // deliveries so far
	Failures    int
	Timeouts    int // the failures that were leases that ran out
	RetriesLeft int // -1: without limit
	Group       string
	Score       *float64
	Priority    int
	Type        string
	Headers     map[string]string

	SentAt         time.Time
	DueAt          time.Time
	FirstStartedAt time.Time
	StartedAt      time.Time
	LeaseUntil     time.Time
	FinishedAt     time.Time
	FirstSentAt    time.Time // of a message with MaxWait: the first of the sends that replaced each other

	Consumer string
	Receipt  int64
	Error    string // the last one
	Result   *string
	Reason   string // why it is dead: retries, timeouts, rejected, expired, batch
	Note     string
	Signal   *string // the text of the last signal
	Batch    string
	After    *BatchCounts
	Children *ChildCounts    // of a message that waits or waited for some
	Parent   *ParentRecord   // of a child
	Rerun    bool            // whether another payload waits until its run has ended
	Limits   []string        // the limits that it needs room in
	Cost     *int            // what it takes of each of them
	Errors   []FailedAttempt // the last failed attempts that Errors keeps, the oldest first
}

// FailedAttempt is a failed attempt of a message: its number, the time of the failure, the consumer, and the error.
type FailedAttempt struct {
	Attempt  int
	At       time.Time
	Consumer string
	Text     string
}

func failedAttempt(value interface{}) FailedAttempt {
	e := listOf(4, value)
	return FailedAttempt{Attempt: whole(e[0]), At: moment(e[1]), Consumer: text(e[2]), Text: text(e[3])}
}

// BatchCounts is the batch that a message waits or waited for, and how many messages of it there were.
type BatchCounts struct {
	Batch                              string
	Pending, Finished, Dead, Cancelled int
}

func record(value interface{}) Record {
	f := fields(value)
	return Record{
		ID:             text(f["id"]),
		Status:         text(f["status"]),
		State:          State(text(f["state"])),
		Payload:        raw(f["payload"]),
		Attempt:        whole(f["attempt"]),
		Failures:       whole(f["failures"]),
		Timeouts:       whole(f["timeouts"]),
		RetriesLeft:    whole(f["retries-left"]),
		Group:          text(f["group"]),
		Score:          double(f["score"]),
		Priority:       whole(f["priority"]),
		Type:           text(f["type"]),
		Headers:        textMap(f["headers"]),
		SentAt:         moment(f["sent-at"]),
		DueAt:          moment(f["due-at"]),
		FirstStartedAt: moment(f["first-started-at"]),
		StartedAt:      moment(f["started-at"]),
		LeaseUntil:     moment(f["lease-until"]),
		FinishedAt:     moment(f["finished-at"]),
		FirstSentAt:    moment(f["first-sent-at"]),
		Consumer:       text(f["consumer"]),
		Receipt:        integer(f["receipt"]),
		Error:          text(f["error"]),
		Result:         orNil(text)(f["result"]),
		Reason:         text(f["reason"]),
		Note:           text(f["note"]),
		Signal:         orNil(text)(f["signal"]),
		Batch:          text(f["batch"]),
		After:          orNil(batchCounts)(f["after"]),
		Children:       orNil(childCounts)(f["children"]),
		Parent:         orNil(parentRecord)(f["parent"]),
		Rerun:          truth(f["rerun"]),
		Limits:         texts(f["limits"]),
		Cost:           orNil(whole)(f["cost"]),
		Errors:         each(failedAttempt)(f["errors"]),
	}
}

func batchCounts(value interface{}) BatchCounts {
	f := fields(value)
	return BatchCounts{
		Batch:     text(f["batch"]),
		Pending:   whole(f["pending"]),
		Finished:  whole(f["finished"]),
		Dead:      whole(f["dead"]),
		Cancelled: whole(f["cancelled"]),
	}
}

// GroupRecord is a group as Groups shows it.
type GroupRecord struct {
	Group       string
	State       string // ready, running, blocked, paused or waiting
	Waiting     int
	Running     int
	Head        string
	HeadDueAt   time.Time
	LeaseUntil  time.Time
	Weight      int
	Concurrency int
	Breaker     string // closed, open or half-open
	OpenUntil   time.Time
}

func groupRecord(value interface{}) GroupRecord {
	f := fields(value)
	return GroupRecord{
		Group:       text(f["group"]),
		State:       text(f["state"]),
		Waiting:     whole(f["waiting"]),
		Running:     whole(f["running"]),
		Head:        text(f["head"]),
		HeadDueAt:   moment(f["head-due-at"]),
		LeaseUntil:  moment(f["lease-until"]),
		Weight:      whole(f["weight"]),
		Concurrency: whole(f["concurrency"]),
		Breaker:     text(f["breaker"]),
		OpenUntil:   moment(f["open-until"]),
	}
}

// BatchRecord is an open batch as Batches shows it: its messages by state, and how many messages wait for it.
type BatchRecord struct {
	BatchCounts
	Running, Held int
}

func batchRecord(value interface{}) BatchRecord {
	f := fields(value)
	return BatchRecord{BatchCounts: batchCounts(value), Running: whole(f["running"]), Held: whole(f["held"])}
}

// ChildCounts is how many children a message has, and how many of them have ended in which way.
type ChildCounts struct {
	Total, Pending, Finished, Dead, Cancelled, Removed int
}

func childCounts(value interface{}) ChildCounts {
	f := fields(value)
	return ChildCounts{
		Total:     whole(f["total"]),
		Pending:   whole(f["pending"]),
		Finished:  whole(f["finished"]),
		Dead:      whole(f["dead"]),
		Cancelled: whole(f["cancelled"]),
		Removed:   whole(f["removed"]),
	}
}

// ParentRecord is the parent of a child: the key of its queue, its id, and the effect of the child's death on it.
type ParentRecord struct {
	Key, ID, OnDead string
}

func parentRecord(value interface{}) ParentRecord {
	f := fields(value)
	return ParentRecord{Key: text(f["key"]), ID: text(f["id"]), OnDead: text(f["ondead"])}
}

// ChildRecord is a child of a message as Children shows it. Key is that of its queue.
type ChildRecord struct {
	Key, ID string
	State   State
	Result  *string
	Error   string
}

func childRecord(value interface{}) ChildRecord {
	f := fields(value)
	return ChildRecord{
		Key:    text(f["key"]),
		ID:     text(f["id"]),
		State:  State(text(f["state"])),
		Result: orNil(text)(f["result"]),
		Error:  text(f["error"]),
	}
}

// LimitRecord is a limit as Limits shows it.
type LimitRecord struct {
	Limit       string
	Rule        string // the name or the pattern that was set for it; empty if nothing limits this name
	Concurrency int    // 0: without limit
	Weighted    bool   // whether that and Rates are about the costs of the messages
	Rates       []Window
	Running     int
	RunningCost int64
	Waiting     int       // the groups that wait in its line
	NextFree    time.Time // when a message of cost 1 can begin; zero if only the end of another one makes room
	Never       bool      // whether the first that waits costs more than the limit ever allows; NextFree is zero then
}

// Window is a Rate of a limit: how many deliveries may begin in any window of Per, and how many have begun in the last
// one.
type Window struct {
	N    int64
	Per  time.Duration
	Used int64
}

func window(value interface{}) Window {
	w := listOf(3, value)
	return Window{N: integer(w[0]), Per: time.Duration(integer(w[1])) * time.Millisecond, Used: integer(w[2])}
}

func limitRecord(value interface{}) LimitRecord {
	f := fields(value)
	never := text(f["next-free"]) == "never"
	if never {
		f["next-free"] = nil
	}
	return LimitRecord{
		Limit:       text(f["limit"]),
		Rule:        text(f["rule"]),
		Concurrency: whole(f["concurrency"]),
		Weighted:    truth(f["weight"]),
		Rates:       each(window)(f["rates"]),
		Running:     whole(f["running"]),
		RunningCost: integer(f["running-cost"]),
		Waiting:     whole(f["waiting"]),
		NextFree:    moment(f["next-free"]),
		Never:       never,
	}
}

// ConsumerRecord is a consumer as Consumers shows it.
type ConsumerRecord struct {
	Name                     string
	Running                  int
	LastSeen                 time.Time
	Delivered, Acked, Nacked int64
}

func consumerRecord(value interface{}) ConsumerRecord {
	f := fields(value)
	return ConsumerRecord{
		Name:      text(f["name"]),
		Running:   whole(f["running"]),
		LastSeen:  moment(f["last-seen"]),
		Delivered: integer(f["delivered"]),
		Acked:     integer(f["acked"]),
		Nacked:    integer(f["nacked"]),
	}
}

// ScheduleRecord is a schedule as Schedules shows it.
type ScheduleRecord struct {
	Name       string
	Definition string
	NextAt     time.Time
	LastAt     time.Time
	Fired      int64
	Until      time.Time // it has no fire time after this one
	Times      *int      // how many messages it still sends; nil: without limit
	Jitter     time.Duration
	Paused     bool
	Skipped    int64 // fire times at which it sent nothing
}

func scheduleRecord(value interface{}) ScheduleRecord {
	f := fields(value)
	return ScheduleRecord{
		Name:       text(f["name"]),
		Definition: text(f["definition"]),
		NextAt:     moment(f["next-at"]),
		LastAt:     moment(f["last-at"]),
		Fired:      integer(f["fired"]),
		Until:      moment(f["until"]),
		Times:      orNil(whole)(f["times"]),
		Jitter:     time.Duration(integer(f["jitter"])) * time.Millisecond,
		Paused:     truth(f["paused"]),
		Skipped:    integer(f["skipped"]),
	}
}

// Explanation is why a message is in its state: a code, a sentence, the end of the reason, and the cause.
type Explanation struct {
	Code  string
	Why   string
	Until time.Time
	By    string
}

func explanation(value interface{}) Explanation {
	f := fields(value)
	return Explanation{Code: text(f["code"]), Why: text(f["why"]), Until: moment(f["until"]), By: text(f["by"])}
}

// Ended is how a message ended, as Wait tells it.
type Ended struct {
	State State
	// Text is the result of a finished message, the error of a dead one.
	Text string
}

func ended(value interface{}) Ended {
	both := listOf(2, value)
	return Ended{State: State(text(both[0])), Text: text(both[1])}
}

// Info is a map of counts and settings, under the names of the command reference: that of DQ.INFO, DQ.NINFO, DQ.TICK.
type Info map[string]interface{}

// Int returns a number, or 0 if there is none of this name.
func (i Info) Int(name string) int64 {
	n, _ := read(i[name], nil, integer)
	return n
}

// Text returns a value as text: a truth is 0 or 1, a null is empty.
func (i Info) Text(name string) string {
	if f, ok := i[name].(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	if b, ok := i[name].(bool); ok {
		return number(integer(b))
	}
	s, _ := read(i[name], nil, text)
	return s
}

func info(value interface{}) Info { return fields(value) }
