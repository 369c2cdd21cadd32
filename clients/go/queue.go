package dq

import (
	"context"
	"encoding/json"
	"time"
)

// Queue is a queue on the server, with a method for each command. It may be used by several goroutines.
//
// Making one does not touch the server. Every method is one command and one round trip (List, Find and Groups: one a
// step). A method does not begin when its ctx is done. Once a command is sent, it waits for the reply. Only a wait at the
// server (Fetch, Wait) ends with ctx: see BlockingCli.
//
// Errors are *ServerError, *ConnError and *ReplyError, or that of ctx.
type Queue struct {
	// Patience is for how long Send repeats itself while the connection is down.
	Patience time.Duration
	// Durable makes a method return only when its command is confirmed. Nil: the reply is enough.
	Durable *Durable
	// Middleware runs around Send, SendJSON and the handlers of workers. Set it before the first use.
	Middleware []Middleware

	cli RedisCli
	key string
}

// NewQueue returns the queue of a key. Its Patience is 10 seconds.
func NewQueue(cli RedisCli, key string) *Queue {
	return &Queue{Patience: 10 * time.Second, cli: cli, key: key}
}

// Key returns the key of the queue.
func (q *Queue) Key() string { return q.key }

// Do runs any other command of the queue: Do(ctx, "TICK", "ADVANCE", "500") is DQ.TICK key ADVANCE 500.
func (q *Queue) Do(ctx context.Context, verb string, words ...string) (interface{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return do(q.cli, q.command(verb, words...))
}

func (q *Queue) command(verb string, words ...string) []string {
	return append([]string{"DQ." + verb, q.key}, words...)
}

// ---- creating

// Create makes the queue with these options. The error is ErrQueueExists if it is there. Sending makes one with defaults.
func (q *Queue) Create(ctx context.Context, options ...QueueOption) error {
	_, err := q.Do(ctx, "CREATE", queueWords(options)...)
	return err
}

// Alter changes options of the queue, also for the messages in it.
func (q *Queue) Alter(ctx context.Context, options ...QueueOption) error {
	_, err := q.Do(ctx, "ALTER", queueWords(options)...)
	return err
}

// Ensure makes the queue, or gives it these options if it is there. Call it when a program starts.
func (q *Queue) Ensure(ctx context.Context, options ...QueueOption) error {
	made, err := q.Do(ctx, "CREATE", append([]string{"NX"}, queueWords(options)...)...)
	if err != nil || made != nil || len(options) == 0 {
		return err
	}
	return q.Alter(ctx, options...)
}

func queueWords(options []QueueOption) (words []string) {
	for _, one := range options {
		words = append(words, one.queueWords()...)
	}
	return words
}

// ---- producing

// Send adds a message. It returns its id, or "" if the id was taken and nothing was added.
//
// While the connection is down it repeats itself, for Patience. A message is not added twice by that, because it always
// has an id: yours, or a new UUID. For an id of yours, "" may also mean that an earlier try got through. Set Dedup on
// the queue to a minute or so: without it an id is free again as soon as its message is finished, and a try repeated
// later than that would add it anew.
func (q *Queue) Send(ctx context.Context, payload []byte, options ...SendOption) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	id, isGiven := valueOf(options, "ID")
	if !isGiven {
		id = newID()
	}
	sent, err := q.sendThrough(ctx, newSending(q, id, payload, options), q.Middleware)
	// An id that was made just now can only be taken by an earlier try of this call.
	if err == nil && sent == "" && !isGiven && !has(options, "IFGROUP") {
		sent = id
	}
	return sent, err
}

// SendJSON is Send of a value as JSON.
func (q *Queue) SendJSON(ctx context.Context, value interface{}, options ...SendOption) (string, error) {
	payload, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	return q.Send(ctx, payload, options...)
}

// SendMany adds all of the messages or none, with the same options. It returns their ids, which the server makes. So it is
// not repeated by itself, and after a *ConnError it is unknown whether they are there.
func (q *Queue) SendMany(ctx context.Context, payloads [][]byte, options ...SendOption) ([]string, error) {
	if len(payloads) == 0 {
		return nil, nil
	}
	words := []string{count(len(payloads))}
	for _, one := range payloads {
		words = append(words, string(one))
	}
	reply, err := q.change(ctx, "MSEND", append(words, sendWords(options)...)...)
	return read(reply, err, texts)
}

// Paths has the places in a JSON object at which GroupPush finds values: names of fields, or JSON Pointers that start
// with /.
type Paths struct {
	// Group is the paths whose values, joined by _, are the group.
	Group []string
	// ID, Score and At (Unix ms) may be empty.
	ID, Score, At string
}

// GroupPush adds a JSON object, and reads its group, id, score and due time from it. It returns the group and the id, which
// are empty if the id was taken.
func (q *Queue) GroupPush(ctx context.Context, object []byte, paths Paths, options ...SendOption) (group, id string, err error) {
	words := append([]string{string(object), "GROUPBY", count(len(paths.Group))}, paths.Group...)
	for _, one := range [][2]string{{"IDPATH", paths.ID}, {"SCOREPATH", paths.Score}, {"ATPATH", paths.At}} {
		if one[1] != "" {
			words = append(words, one[0], one[1])
		}
	}
	reply, err := q.change(ctx, "GROUPPUSH", append(words, sendWords(options)...)...)
	both, err := read(reply, err, texts)
	if err != nil || len(both) < 2 {
		return "", "", err
	}
	return both[0], both[1], nil
}

func sendWords(options []SendOption) (words []string) {
	for _, one := range options {
		words = append(words, one.sendWords()...)
	}
	return words
}

// has reports whether an option is among options.
func has(options []SendOption, name string) bool {
	for _, one := range options {
		if words := one.sendWords(); len(words) > 0 && words[0] == name {
			return true
		}
	}
	return false
}
