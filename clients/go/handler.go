package dq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Handler does the work of a message. If it returns nil, the message is acked. An error means that it has failed, and the
// server decides by RETRIES and BACKOFF what comes next. Retry, Reject, Snooze and Park are errors that say more.
//
// ctx ends when the lease is lost, when the worker's TimeLimit is over, and when the worker stops and its Grace is over.
type Handler func(ctx context.Context, m *Message) error

// Retry is a failure with a wait of its own in place of the backoff of the queue.
type Retry struct {
	Err   error
	After time.Duration
}

func (e Retry) Error() string { return reason(e.Err, "to be tried again") }

// Unwrap returns the cause.
func (e Retry) Unwrap() error { return e.Err }

// Reject is the failure of a message that can never succeed. It is dead at once, with the reason rejected.
type Reject struct {
	Err error
}

func (e Reject) Error() string { return reason(e.Err, "rejected") }

// Unwrap returns the cause.
func (e Reject) Unwrap() error { return e.Err }

// Snooze gives a message back without a failure: it comes again after For. PauseGroup and PauseQueue also pause its group
// or the queue in the same step, such as for the Retry-After of a partner.
type Snooze struct {
	For                    time.Duration
	PauseGroup, PauseQueue time.Duration
}

func (e Snooze) Error() string { return fmt.Sprintf("snoozed for %v", e.For) }

// Park is for a message that has to wait for a signal (Queue.Signal): an approval, the answer of a partner. No worker is
// bound meanwhile, and no attempt and no failure is counted. The next delivery has the text of the signal as
// Message.Signal. For bounds the wait: it is delivered then, and Signal is nil. 0 means without end. Note stays with the
// message for that delivery, if it is not empty.
type Park struct {
	For  time.Duration
	Note string
}

func (e Park) Error() string { return "parked until a signal comes" }

func reason(err error, otherwise string) string {
	if err == nil {
		return otherwise
	}
	return err.Error()
}

// longestError is the length at which the text of an error is cut.
const longestError = 1000

// verdict returns the outcome of a message whose handler returned err, and the options of the NACK. The methods of an
// error are the program's own, and may panic: those of a nil pointer do so easily.
func verdict(err error) (step Step, options []NackOption) {
	defer func() {
		if recover() != nil {
			step, options = Nacked, []NackOption{Error(fmt.Sprintf("an error of type %T that panics", err))}
		}
	}()
	var snooze Snooze
	if errors.As(err, &snooze) {
		options := []NackOption{Silent()}
		if snooze.For > 0 {
			options = append(options, Delay(snooze.For))
		}
		if snooze.PauseGroup > 0 {
			options = append(options, PauseGroup(snooze.PauseGroup))
		} else if snooze.PauseQueue > 0 {
			options = append(options, PauseQueue(snooze.PauseQueue))
		}
		return GivenBack, options
	}
	var park Park
	if errors.As(err, &park) {
		options := []NackOption{Silent(), Parked(park.For)}
		if park.Note != "" {
			options = append(options, Note(park.Note))
		}
		return GivenBack, options
	}
	text := err.Error()
	if len(text) > longestError {
		text = text[:longestError]
	}
	options = []NackOption{Error(text)}
	var retry Retry
	var reject Reject
	switch {
	case errors.As(err, &reject):
		options = append(options, Fatal())
	case errors.As(err, &retry):
		after := retry.After
		if after < 0 {
			after = 0
		}
		options = append(options, Delay(after))
	}
	return Nacked, options
}

// JSON makes a handler of a function that takes the payload as a value. A payload that does not fit is rejected.
func JSON[T any](handle func(ctx context.Context, value T, m *Message) error) Handler {
	return func(ctx context.Context, m *Message) error {
		var value T
		if err := json.Unmarshal(m.Payload, &value); err != nil {
			return Reject{err}
		}
		return handle(ctx, value, m)
	}
}

// Mux chooses a handler by the type of the message. The zero value has no handlers.
//
//	var mux dq.Mux
//	mux.Handle("welcome", welcome)
//	worker := dq.Worker{Queue: mails, Handler: mux.Serve}
type Mux struct {
	// Otherwise handles the types that have no handler. Without it such a message fails, so that it can be seen, and
	// redriven when there is a handler.
	Otherwise Handler

	byType map[string]Handler
}

// Handle sets the handler of a type. All handlers must be set before the worker runs.
func (x *Mux) Handle(label string, handler Handler) {
	if x.byType == nil {
		x.byType = map[string]Handler{}
	}
	x.byType[label] = handler
}

// Serve is the Handler that calls the handler of the message's type.
func (x *Mux) Serve(ctx context.Context, m *Message) error {
	handler := x.byType[m.Type]
	if handler == nil {
		handler = x.Otherwise
	}
	if handler == nil {
		return fmt.Errorf("no handler for type %q", m.Type)
	}
	return handler(ctx, m)
}
