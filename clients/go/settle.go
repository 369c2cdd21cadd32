package dq

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// errEnded is the failure of a message whose handler has neither returned nor panicked with a value.
var errEnded = errors.New("the handler has ended its goroutine (runtime.Goexit) or has panicked with nil")

// handle runs the handler, and settles the message.
//
// A deferred function settles it, however the handler ends: runtime.Goexit runs nothing else any more. It calls little
// else, because a stack that outgrows its first 2 KiB costs 2 us a message.
func (r *run) handle(ctx context.Context, m *Message) {
	r.Observe(Begun, m)
	err := errEnded
	defer func() { r.ended(ctx, m, err) }()
	err = r.call(ctx, m)
}

// call runs the handler, and returns a panic as an error.
func (r *run) call(ctx context.Context, m *Message) (err error) {
	err = errEnded // A recovered panic(nil) leaves it so.
	defer func() {
		if caught := recover(); caught != nil {
			r.Logf("dq: %s: panic: %v\n%s", m.ID, caught, debug.Stack())
			if cause, ok := caught.(error); ok {
				err = fmt.Errorf("panic: %w", cause)
			} else {
				err = fmt.Errorf("panic: %v", caught)
			}
		}
	}()
	if r.mayHaveKilled(m) {
		if err := r.refuseKiller(m); err != nil {
			return err
		}
	}
	return r.Handler(ctx, m)
}

// mayHaveKilled tells whether a message may have killed more workers than it may. Where RETRIES is a limit, the server
// counts.
func (r *run) mayHaveKilled(m *Message) bool {
	return r.LostWorkers > 0 && m.Attempt > r.LostWorkers && m.RetriesLeft == -1
}

func (r *run) refuseKiller(m *Message) error {
	record, err := m.Queue.Get(context.Background(), m.ID)
	if err != nil {
		r.Logf("dq: whether %s kills its workers is unknown: %v", m.ID, err)
	} else if record != nil && record.Timeouts >= r.LostWorkers {
		return Reject{fmt.Errorf("given up: %d workers were lost with it", record.Timeouts)}
	}
	return nil
}

// ended settles a message whose handler has ended with err.
func (r *run) ended(ctx context.Context, m *Message, err error) {
	said := m.outcome()
	isPlain := said.cost == nil && len(said.following) == 0 && said.effects.isEmpty()
	switch {
	case err == nil && isPlain && ctx.Err() == nil && r.leases.drop(m):
		r.Observe(Acked, m)
		r.acks.add(done{m, said.result})
	case r.leases.holds(m):
		// The message's lease is extended until the server knows, in case the connection is down.
		r.Observe(r.settleNow(m, said, err), m)
		r.leases.drop(m)
	default:
		r.Logf("dq: %s was finished after its lease was over", m.ID)
		r.Observe(Lost, m)
	}
}

// settleNow acks or nacks a message with a command of its own. It returns what has become of it.
func (r *run) settleNow(m *Message, said outcome, err error) Step {
	if err == nil && (len(said.following) > 0 || !said.effects.isEmpty()) {
		var acked bool
		if acked, err = r.follow(m, said); !isRefusal(err) {
			return step(acked, Acked)
		}
	}
	if err == nil {
		return r.ackNow(m, said)
	}
	r.Logf("dq: %s failed in attempt %d: %v", m.ID, m.Attempt, err)
	become, options := verdict(err)
	changed, err := r.settle([]*Message{m}, "NACK", nackWords(options))
	if isRefusal(err) {
		// The message fails plainly if the server refuses the outcome.
		become = Nacked
		changed, _ = r.settle([]*Message{m}, "NACK", nackWords([]NackOption{Error(err.Error())}))
	}
	return step(changed > 0, become)
}

// follow acks a message, does its effects and sends the messages that follow from it, in one step. It returns false if the
// lease was over.
func (r *run) follow(m *Message, said outcome) (bool, error) {
	words := append([]string{number(m.Receipt)}, said.words()...)
	verb := "ACK"
	if len(said.following) > 0 {
		verb = "ACKSEND"
	}
	words = append(words, followingWords(said.following, m.Queue.key)...)
	reply, err := insist(r.settling, m.Queue.cli, r.Lease, m.Queue.command(verb, words...))
	if err != nil {
		r.Logf("dq: %s failed: %v", verb, err)
	}
	return err == nil && reply != nil, err
}

// words returns the options of an ack.
func (o outcome) words() (words []string) {
	if o.result != nil {
		words = append(words, "RESULT", *o.result)
	}
	if o.cost != nil && len(o.following) == 0 {
		words = append(words, "COST", count(*o.cost))
	}
	return append(words, o.effects.words()...)
}

// ackNow acks a message with its result. If the server refuses the result, the message is dead: its work is done.
func (r *run) ackNow(m *Message, said outcome) Step {
	changed, err := r.settle([]*Message{m}, "ACK", said.words())
	if !isRefusal(err) || len(said.words()) == 0 {
		return step(changed > 0, Acked)
	}
	refused := []NackOption{Fatal(), Error("the result was refused: " + err.Error())}
	changed, _ = r.settle([]*Message{m}, "NACK", nackWords(refused))
	return step(changed > 0, Nacked)
}

func step(isDone bool, done Step) Step {
	if !isDone {
		return Lost
	}
	return done
}

// isRefusal tells whether the server has refused a command for good.
func isRefusal(err error) bool {
	var reply *ServerError
	return errors.As(err, &reply) && !IsTransient(err)
}

// giveBack gives messages back as if they had not been delivered.
func (r *run) giveBack(messages []*Message) {
	for _, these := range byQueue(messages) {
		_, _ = r.settle(these, "NACK", []string{"SILENT"})
		for _, m := range these {
			r.Observe(GivenBack, m)
		}
	}
}

// settle acks or nacks messages of one queue. It repeats itself until their leases are over or the worker must end. It
// returns how many leases were not over.
func (r *run) settle(messages []*Message, verb string, words []string) (int, error) {
	queue := messages[0].Queue
	reply, err := insist(r.settling, queue.cli, r.Lease, queue.command(verb, append(numbers(Receipts(messages...)), words...)...))
	changed, err := read(reply, err, whole)
	if err != nil {
		r.Logf("dq: %s failed: %v", verb, err)
	} else if changed < len(messages) {
		r.Logf("dq: %s came after the lease of %d of %d messages", verb, len(messages)-changed, len(messages))
	}
	return changed, err
}

// byQueue sorts messages by their queue, because a command is about one, in parts that fit into one command.
func byQueue(messages []*Message) (parts [][]*Message) {
	sorted := map[*Queue][]*Message{}
	for _, m := range messages {
		sorted[m.Queue] = append(sorted[m.Queue], m)
	}
	for _, these := range sorted {
		for len(these) > mostReceipts {
			parts = append(parts, these[:mostReceipts])
			these = these[mostReceipts:]
		}
		parts = append(parts, these)
	}
	return parts
}
