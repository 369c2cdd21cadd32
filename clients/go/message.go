package dq

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Message is one delivery of a message.
type Message struct {
	ID string
	// Receipt grows with every delivery of the queue, so it is a fencing token: let the store that you write to refuse a
	// write whose receipt is lower than one that it has seen. Then a worker that was frozen for longer than its lease
	// cannot overwrite what the next one did.
	Receipt int64
	// Attempt counts from 1.
	Attempt  int
	Payload  []byte
	Group    string
	Score    *float64
	Priority int
	Type     string
	Headers  map[string]string
	SentAt   time.Time
	DueAt    time.Time
	// LeaseUntil is as of the delivery. The heartbeats of a worker extend it on the server.
	LeaseUntil time.Time
	// RetriesLeft is how many failures are still forgiven. -1 means all.
	RetriesLeft int
	// Note is the note that an earlier attempt has left.
	Note string
	// Signal is the text of the last signal. It is nil if none has come, also when the wait for one was over.
	Signal *string
	Batch  string
	// After is the batch that the message was held for.
	After *BatchCounts
	// Children are the children that the message was held for.
	Children *ChildCounts
	// Queue is where the message came from.
	Queue *Queue

	lease time.Duration // of the worker that handles it

	mutex sync.Mutex
	said  outcome // by its handler
}

// outcome has the result of a handler for a message that it finishes.
type outcome struct {
	result    *string
	cost      *int
	effects   *Effects
	following []Following
}

// JSON reads the payload into a variable.
func (m *Message) JSON(into interface{}) error { return json.Unmarshal(m.Payload, into) }

// SetResult makes the worker keep a text with the record of the message when its handler has succeeded.
func (m *Message) SetResult(result string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.said.result = &result
}

// SetCost makes the worker ack the message, when its handler has succeeded, with its real cost for its limits. A
// message that Follow acks has no real cost.
func (m *Message) SetCost(cost int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.said.cost = &cost
}

// SetNote leaves a note for the next attempt, such as how far the work is. It also extends the lease, like a heartbeat.
// The error is ErrLeaseLost if the lease is over. Only for messages of a Worker.
func (m *Message) SetNote(note string) error {
	kept, err := m.Queue.Touch(context.Background(), m.lease, []int64{m.Receipt}, Note(note))
	if err == nil && kept == 0 {
		err = ErrLeaseLost
	}
	return err
}

// Effects are changes of Redis keys that the worker does together with its ack of the message. A handler adds to them. If the
// server refuses them, the message has failed.
func (m *Message) Effects() *Effects {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.said.collected()
}

// collected returns the effects of the message.
func (o *outcome) collected() *Effects {
	if o.effects == nil {
		o.effects = new(Effects)
	}
	return o.effects
}

// Follow makes the worker send these messages and signals in the same step as the ack, when the handler has succeeded: all
// of it or nothing. If the server refuses it (a full queue, say), the message has failed.
func (m *Message) Follow(following ...Following) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, one := range following {
		if given, ok := one.(*Effects); ok {
			all := m.said.collected()
			all.effects = append(all.effects, given.effects...)
			all.conditions = append(all.conditions, given.conditions...)
		} else {
			m.said.following = append(m.said.following, one)
		}
	}
}

// outcome returns the result of the handler for the message.
func (m *Message) outcome() outcome {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.said
}

// Receipts returns the receipts of messages, for Ack, Nack and Touch.
func Receipts(messages ...*Message) []int64 {
	receipts := make([]int64, len(messages))
	for i, m := range messages {
		receipts[i] = m.Receipt
	}
	return receipts
}

// delivery reads one element of a FETCH ... WITHMETA reply.
func (q *Queue) delivery(value interface{}) *Message {
	parts := listOf(5, value)
	f := fields(parts[4])
	return &Message{
		ID:          text(parts[0]),
		Receipt:     integer(parts[1]),
		Attempt:     whole(parts[2]),
		Payload:     raw(parts[3]),
		Group:       text(f["group"]),
		Score:       double(f["score"]),
		Priority:    whole(f["priority"]),
		Type:        text(f["type"]),
		Headers:     textMap(f["headers"]),
		SentAt:      moment(f["sent-at"]),
		DueAt:       moment(f["due-at"]),
		LeaseUntil:  moment(f["lease-until"]),
		RetriesLeft: whole(f["retries-left"]),
		Note:        text(f["note"]),
		Signal:      orNil(text)(f["signal"]),
		Batch:       text(f["batch"]),
		After:       orNil(batchCounts)(f["after"]),
		Children:    orNil(childCounts)(f["children"]),
		Queue:       q,
	}
}
