package dq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Durable makes a Queue wait for the confirmation of its commands: Send, SendMany, GroupPush, Ack, AckSend and Nack
// return when it can no longer be lost, and otherwise with a *NotConfirmedError.
//
// The zero value wants the log of the server synced to its disk, so that a power failure takes nothing (WAITAOF, which Redis
// 7.2 and Valkey have). With appendfsync everysec that takes up to a second. The client must be a PipelineCli.
type Durable struct {
	// Replicas is how many replicas must have it too, in their logs, synced.
	Replicas int
	// InMemory is whether it is enough that the replicas have it in memory: WAIT, which all servers have. Nothing needs to be
	// synced then, and Replicas must be at least 1.
	InMemory bool
	// Timeout is for how long one confirmation may take. 0 means 5 seconds. Send repeats itself for the Patience of the queue.
	Timeout time.Duration
}

// PipelineCli is a RedisCli that can run commands on one connection, one right after the other. The adapters of this module
// are one.
//
// DoPipeline sends all commands at once to the server that has the key, and returns the reply to each. A reply that is an
// error of the server is an error in replies. err is for all else, such as a lost connection. It repeats nothing. The
// replies may take wait longer than others.
type PipelineCli interface {
	RedisCli
	DoPipeline(key string, wait time.Duration, commands ...[]interface{}) (replies []interface{}, err error)
}

// NotConfirmedError says that a command was run, but is not known to survive a fault: the queue is as Reply says on the
// server that has replied, and may lose that again.
type NotConfirmedError struct {
	// Reply is the reply of the server to the command.
	Reply interface{}
	// ID is the id of the message, of Send. It may be sent again with this ID.
	ID string
	// Synced is whether the log of the server was synced, and Replicas how many replicas have confirmed.
	Synced   bool
	Replicas int
	// Err is the reply of the server in place of a confirmation, or nil if the time was over.
	Err error

	why string
}

func (e *NotConfirmedError) Error() string {
	return "dq: the command was run, but it is not confirmed that this lasts: " + e.why
}

// Unwrap returns Err.
func (e *NotConfirmedError) Unwrap() error { return e.Err }

// run runs a command, and has it confirmed.
func (d *Durable) run(cli RedisCli, key string, command []string) (interface{}, error) {
	pipeline, ok := cli.(PipelineCli)
	if !ok {
		return nil, errors.New("dq: Durable needs a client that is a PipelineCli, as those of dq/redigo and dq/goredis are")
	}
	if d.InMemory && d.Replicas < 1 {
		return nil, errors.New("dq: Durable with InMemory needs Replicas of at least 1")
	}
	timeout := d.Timeout
	if timeout <= 0 {
		timeout = 5 * time.Second
	}
	replies, err := pipeline.DoPipeline(key, timeout, arguments(command), arguments(d.words(timeout)))
	if err != nil {
		return checked(nil, err)
	}
	if refused, ok := replies[0].(error); ok {
		return checked(nil, refused)
	}
	return replies[0], d.check(replies[0], replies[1], timeout)
}

// words returns the command that confirms.
func (d *Durable) words(timeout time.Duration) []string {
	if d.InMemory {
		return []string{"WAIT", strconv.Itoa(d.Replicas), millis(timeout)}
	}
	return []string{"WAITAOF", "1", strconv.Itoa(d.Replicas), millis(timeout)}
}

// check returns an error unless the reply to words confirms the command.
func (d *Durable) check(reply, confirmation interface{}, timeout time.Duration) error {
	missing := &NotConfirmedError{Reply: reply}
	if refused, ok := confirmation.(error); ok {
		_, missing.Err = checked(nil, refused)
		missing.why = refused.Error()
		if strings.Contains(missing.why, "unknown command") {
			missing.why += " (WAITAOF needs Redis 7.2 or Valkey. With InMemory, replicas confirm on any server)"
		}
		return missing
	}
	if d.InMemory {
		missing.Replicas = whole(confirmation)
	} else {
		both := listOf(2, confirmation)
		missing.Synced, missing.Replicas = truth(both[0]), whole(both[1])
	}
	if (d.InMemory || missing.Synced) && missing.Replicas >= d.Replicas {
		return nil
	}
	missing.why = fmt.Sprintf("after %v its log was synced: %v, and %d of %d replicas had it",
		timeout, missing.Synced, missing.Replicas, d.Replicas)
	return missing
}

// change runs a command that changes the queue, and has it confirmed if the queue is durable.
func (q *Queue) change(ctx context.Context, verb string, words ...string) (interface{}, error) {
	if q.Durable == nil {
		return q.Do(ctx, verb, words...)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return q.Durable.run(q.cli, q.key, q.command(verb, words...))
}

// sendInsisting sends, and repeats that while the connection is down, or while it is not confirmed.
func (q *Queue) sendInsisting(ctx context.Context, words []string) (interface{}, error) {
	if q.Durable == nil {
		return insist(ctx, q.cli, q.Patience, q.command("SEND", words...))
	}
	var added interface{}
	var unconfirmed *NotConfirmedError
	again := func(err error) bool { return IsTransient(err) || unconfirmed != nil && unconfirmed.Err == nil }
	reply, err := insistOn(ctx, q.Patience, again, func() (interface{}, error) {
		reply, err := q.change(ctx, "SEND", words...)
		if unconfirmed = nil; errors.As(err, &unconfirmed) && reply != nil {
			added = reply
		}
		return reply, err
	})
	// A repetition finds that the id is taken, by the first try.
	if reply == nil {
		reply = added
	}
	if unconfirmed != nil {
		unconfirmed.Reply, unconfirmed.ID = reply, idIn(words)
	}
	return reply, err
}

// idIn returns the word after ID behind a payload.
func idIn(words []string) string {
	for i := 1; i+1 < len(words); i++ {
		if words[i] == "ID" {
			return words[i+1]
		}
	}
	return ""
}

// changeReceipts runs a command about receipts. A durable queue repeats it while there is no reply. isDone says whether a reply
// means that all was done: if a repetition finds receipts stale, the first try may have been done, and lost again.
func (q *Queue) changeReceipts(
	ctx context.Context, verb string, words []string, isDone func(reply interface{}) bool,
) (interface{}, error) {
	if q.Durable == nil {
		return q.Do(ctx, verb, words...)
	}
	tries := 0
	reply, err := insistOn(ctx, q.Patience, IsTransient, func() (interface{}, error) {
		tries++
		return q.change(ctx, verb, words...)
	})
	if err == nil && tries > 1 && !isDone(reply) {
		err = &NotConfirmedError{Reply: reply, why: "the connection was lost, and then receipts were stale: " +
			"the first try was done, or their leases are over"}
	}
	return reply, err
}
