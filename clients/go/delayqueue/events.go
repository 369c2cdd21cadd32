package delayqueue

import (
	"fmt"
	"time"

	"dq"
)

const (
	// NewMessageEvent is a message that was sent.
	NewMessageEvent = iota + 1
	// ReadyEvent is a message that is due. It is reported when the message is delivered for the first time.
	ReadyEvent
	// DeliveredEvent is the first delivery of a message.
	DeliveredEvent
	// AckEvent is a message that was consumed.
	AckEvent
	// NackEvent is a message whose callback returned false.
	NackEvent
	// RetryEvent is another delivery of a message.
	RetryEvent
	// FinalFailedEvent is a message whose callback returned false for the last time.
	FinalFailedEvent
)

// Event is something that happened to messages of a queue.
type Event struct {
	// Code is the kind of event, such as AckEvent.
	Code int
	// Timestamp is when, in Unix seconds.
	Timestamp int64
	// MsgCount is to how many messages.
	MsgCount int
}

// EventListener gets events. It is called by the goroutine that works on the message, so it should not take long.
type EventListener interface {
	OnEvent(*Event)
}

// ListenEvent sets the listener of this instance, which gets the events of this instance only. A queue has one listener:
// this ends EnableReport. A Monitor listens to all instances.
func (q *DelayQueue) ListenEvent(listener EventListener) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.listener = listener
}

// DisableListener removes the listener.
func (q *DelayQueue) DisableListener() { q.ListenEvent(nil) }

// EnableReport reports the events of this instance to the Monitors of the queue.
func (q *DelayQueue) EnableReport() { q.ListenEvent(&reporter{queue: q}) }

// DisableReport ends EnableReport.
func (q *DelayQueue) DisableReport() { q.DisableListener() }

// report tells the listener of one message.
func (q *DelayQueue) report(codes ...int) {
	q.mutex.Lock()
	listener := q.listener
	q.mutex.Unlock()
	if listener == nil {
		return
	}
	for _, code := range codes {
		listener.OnEvent(&Event{Code: code, Timestamp: time.Now().Unix(), MsgCount: 1})
	}
}

// observe reports the steps of the worker.
func (q *DelayQueue) observe(step dq.Step, m *dq.Message) {
	switch {
	case step == dq.Begun && m.Attempt == 1:
		q.report(ReadyEvent, DeliveredEvent)
	case step == dq.Begun:
		q.report(RetryEvent)
	case step == dq.Acked:
		q.report(AckEvent)
	case step == dq.Nacked && m.RetriesLeft == 0:
		q.report(NackEvent, FinalFailedEvent)
	case step == dq.Nacked:
		q.report(NackEvent)
	}
}

func (e *Event) encode() string { return fmt.Sprintf("%d %d %d", e.Code, e.Timestamp, e.MsgCount) }

func decode(text string) (*Event, error) {
	e := &Event{}
	if _, err := fmt.Sscanf(text, "%d %d %d", &e.Code, &e.Timestamp, &e.MsgCount); err != nil {
		return nil, fmt.Errorf("not an event: %q", text)
	}
	return e, nil
}
