package dq

import (
	"context"
	"time"
)

// Get returns everything about a message, or nil if its id is unknown.
func (q *Queue) Get(ctx context.Context, id string) (*Record, error) {
	reply, err := q.Do(ctx, "GET", id)
	return read(reply, err, orNil(record))
}

// List visits all records in a state, in the order of that state. It ends with the first error that visit returns. A
// message that moves within the state meanwhile (Touch, Reschedule) may come twice or not at all.
// Count is how many it gets at a time: 100 by default.
func (q *Queue) List(ctx context.Context, state State, visit func(Record) error, options ...ListOption) error {
	var words []string
	for _, one := range options {
		words = append(words, one.listWords()...)
	}
	return pages(ctx, q, []string{"LIST", string(state)}, counted(words, 100), record, visit)
}

// Find visits the records in a state to which all conditions apply. Count is how many messages a step examines: 1,000 by
// default.
func (q *Queue) Find(ctx context.Context, state State, visit func(Record) error, conditions ...FindOption) error {
	return pages(ctx, q, []string{"FIND", string(state)}, findWords(conditions), record, visit)
}

// RedriveFound makes the dead messages to which all conditions apply pending again. It returns how many.
func (q *Queue) RedriveFound(ctx context.Context, conditions ...FindOption) (int, error) {
	return q.changeFound(ctx, Dead, "REDRIVE", conditions)
}

// CancelFound cancels the messages in a state to which all conditions apply. It returns how many.
func (q *Queue) CancelFound(ctx context.Context, state State, conditions ...FindOption) (int, error) {
	return q.changeFound(ctx, state, "CANCEL", conditions)
}

// PurgeFound removes the messages in a state to which all conditions apply. It returns how many.
func (q *Queue) PurgeFound(ctx context.Context, state State, conditions ...FindOption) (int, error) {
	return q.changeFound(ctx, state, "PURGE", conditions)
}

func (q *Queue) changeFound(ctx context.Context, state State, what string, conditions []FindOption) (total int, err error) {
	words := append(findWords(conditions), "DO", what)
	for cursor := "0"; ; {
		reply, err := q.Do(ctx, "FIND", append([]string{string(state), "CURSOR", cursor}, words...)...)
		step, err := read(reply, err, func(value interface{}) []interface{} { return listOf(2, value) })
		if err != nil {
			return total, err
		}
		cursor = text(step[0])
		total += whole(step[1])
		if cursor == "0" {
			return total, nil
		}
	}
}

func findWords(conditions []FindOption) (words []string) {
	for _, one := range conditions {
		words = append(words, one.findWords()...)
	}
	return counted(words, 1000)
}

// counted adds a COUNT to options that have none.
func counted(words []string, otherwise int) []string {
	for _, word := range words {
		if word == "COUNT" {
			return words
		}
	}
	return append(words, "COUNT", count(otherwise))
}

// Peek returns the messages that Fetch would take next, without taking them.
func (q *Queue) Peek(ctx context.Context, n int) ([]Record, error) {
	reply, err := q.Do(ctx, "PEEK", "COUNT", count(n))
	return read(reply, err, each(record))
}

// Len returns the number of pending and running messages, or of those in one state.
func (q *Queue) Len(ctx context.Context, state ...State) (int, error) {
	words := make([]string, len(state))
	for i, one := range state {
		words[i] = string(one)
	}
	reply, err := q.Do(ctx, "LEN", words...)
	return read(reply, err, whole)
}

// Info returns states, options and counters.
func (q *Queue) Info(ctx context.Context) (Info, error) {
	reply, err := q.Do(ctx, "INFO")
	return read(reply, err, info)
}

// Groups visits the groups that have messages, settings or a hold.
func (q *Queue) Groups(ctx context.Context, visit func(GroupRecord) error) error {
	return pages(ctx, q, []string{"GROUPS"}, []string{"COUNT", "100"}, groupRecord, visit)
}

// Batches visits the open batches.
func (q *Queue) Batches(ctx context.Context, visit func(BatchRecord) error) error {
	return pages(ctx, q, []string{"BATCHES"}, []string{"COUNT", "100"}, batchRecord, visit)
}

// Children visits the children of a message, and their states.
func (q *Queue) Children(ctx context.Context, id string, visit func(ChildRecord) error) error {
	return pages(ctx, q, []string{"CHILDREN", id}, []string{"COUNT", "100"}, childRecord, visit)
}

// Limits visits the limits with names, and each name of which something is used.
func (q *Queue) Limits(ctx context.Context, visit func(LimitRecord) error) error {
	return pages(ctx, q, []string{"LIMITS"}, []string{"COUNT", "100"}, limitRecord, visit)
}

// Consumers returns the consumers that fetched under a name, and the messages that they hold.
func (q *Queue) Consumers(ctx context.Context) ([]ConsumerRecord, error) {
	reply, err := q.Do(ctx, "CONSUMERS")
	return read(reply, err, each(consumerRecord))
}

// Explain returns why a message is in its state, or nil for an unknown id.
func (q *Queue) Explain(ctx context.Context, id string) (*Explanation, error) {
	reply, err := q.Do(ctx, "EXPLAIN", id)
	return read(reply, err, orNil(explanation))
}

// Wait waits until a message has ended. It returns nil if that takes longer than timeout, or if the id is unknown. It ends
// with ctx like Fetch.
func (q *Queue) Wait(ctx context.Context, id string, timeout time.Duration) (*Ended, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	reply, err := doBlocking(ctx, q.cli, timeout, q.command("WAIT", id, millis(timeout)))
	how, err := read(reply, err, orNil(ended))
	if err == nil && how == nil {
		err = ctx.Err()
	}
	return how, err
}

// pages visits the elements of a listing, which comes in steps.
func pages[T any](
	ctx context.Context, q *Queue, command, options []string, parse func(interface{}) T, visit func(T) error,
) error {
	for cursor := "0"; ; {
		words := append(append(append([]string{}, command[1:]...), "CURSOR", cursor), options...)
		reply, err := q.Do(ctx, command[0], words...)
		step, err := read(reply, err, func(value interface{}) []interface{} { return listOf(2, value) })
		if err != nil {
			return err
		}
		elements, err := read(step[1], nil, each(parse))
		if err != nil {
			return err
		}
		for _, one := range elements {
			if err := visit(one); err != nil {
				return err
			}
		}
		if cursor = text(step[0]); cursor == "0" {
			return nil
		}
	}
}
