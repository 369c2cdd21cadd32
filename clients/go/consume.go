package dq

import (
	"context"
	"strconv"
	"time"
)

// Fetch takes up to Count messages. It may return none.
//
// With Block it waits for one. When ctx is done while it waits, it returns the error of ctx, and no message is lost: the
// server ends the wait (BlockingCli), or, with a client that only has Do, Fetch returns when Block is over. A message that
// came at the last moment is returned all the same, with no error.
func (q *Queue) Fetch(ctx context.Context, options ...FetchOption) ([]*Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	messages, err := q.fetchApplying(ctx, fetchWords(options), effectsAmong(options))
	if err == nil && len(messages) == 0 {
		err = ctx.Err()
	}
	return messages, err
}

func (q *Queue) fetch(ctx context.Context, words []string) ([]*Message, error) {
	return q.fetchApplying(ctx, words, nil)
}

func (q *Queue) fetchApplying(ctx context.Context, words []string, effects *Effects) ([]*Message, error) {
	reply, err := waiting(ctx, q.cli, q.command("FETCH", append([]string{"WITHMETA"}, words...)...), words)
	return read(reply, err, func(reply interface{}) []*Message { return each(q.delivery)(effects.rest(reply)) })
}

// FetchFirst takes messages of the first of several queues that can give: this one, then the others. Message.Queue says
// which it was. It waits like Fetch. In a cluster the queues must be in one slot.
func (q *Queue) FetchFirst(ctx context.Context, others []*Queue, options ...FetchOption) ([]*Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	words, queues, keys := fetchWords(options), map[string]*Queue{}, []string{}
	for _, one := range append([]*Queue{q}, others...) {
		queues[one.key], keys = one, append(keys, one.key)
	}
	command := append(append([]string{"DQ.MFETCH", count(len(keys))}, keys...), "WITHMETA")
	reply, err := waiting(ctx, q.cli, append(command, words...), words)
	messages, err := read(reply, err, func(value interface{}) []*Message {
		if value == nil {
			return nil
		}
		both := listOf(2, value)
		return each(queues[text(both[0])].delivery)(both[1])
	})
	if err == nil && len(messages) == 0 {
		err = ctx.Err()
	}
	return messages, err
}

// acksToo tells a Worker that a FETCH can ack other messages.
func (q *Queue) acksToo() bool { return true }

// waiting runs a command with the options of fetchWords. It waits at the server if there is a BLOCK, which comes first.
func waiting(ctx context.Context, cli RedisCli, command, options []string) (interface{}, error) {
	if len(options) >= 2 && options[0] == "BLOCK" {
		if ms, err := strconv.ParseInt(options[1], 10, 64); err == nil {
			return doBlocking(ctx, cli, time.Duration(ms)*time.Millisecond, command)
		}
	}
	return do(cli, command)
}

// fetchWords returns the words of options, with BLOCK first.
func fetchWords(options []FetchOption) (words []string) {
	for _, one := range options {
		these := one.fetchWords()
		if len(these) == 2 && these[0] == "BLOCK" {
			words = append(append([]string{}, these...), words...)
		} else {
			words = append(words, these...)
		}
	}
	return words
}

// Ack finishes messages. It returns how many were finished. The others had lost their lease.
func (q *Queue) Ack(ctx context.Context, receipts []int64, options ...AckOption) (int, error) {
	var words []string
	for _, one := range options {
		words = append(words, one.ackWords()...)
	}
	if effects := effectsAmong(options); !effects.isEmpty() {
		reply, err := q.changeReceipts(ctx, "ACK", append(numbers(receipts), words...), isThere)
		return read(reply, err, effects.keep)
	}
	return q.settle(ctx, "ACK", receipts, words)
}

// Nack fails messages. It returns how many failed. The others had lost their lease.
func (q *Queue) Nack(ctx context.Context, receipts []int64, options ...NackOption) (int, error) {
	return q.settle(ctx, "NACK", receipts, nackWords(options))
}

// Touch makes leases end this long from now, at least 1 ms. It returns how many do. The others were over.
func (q *Queue) Touch(ctx context.Context, lease time.Duration, receipts []int64, options ...TouchOption) (int, error) {
	if len(receipts) == 0 {
		return 0, nil
	}
	words := append([]string{millis(lease)}, numbers(receipts)...)
	for _, one := range options {
		words = append(words, one.touchWords()...)
	}
	reply, err := q.Do(ctx, "TOUCH", words...)
	return read(reply, err, whole)
}

// Following is a consequence of a message that is done: a Next, a Signal or Effects, in AckSend and Message.Follow.
type Following interface{ followingWords(key string) []string }

// Next is a message that follows from another one.
type Next struct {
	// To is the key of a queue. Empty means the queue of the message that is acked.
	To      string
	Payload []byte
	Options []SendOption
}

func (n Next) followingWords(key string) []string {
	return append([]string{"NEXT", or(n.To, key), string(n.Payload)}, sendWords(n.Options)...)
}

// Signal is a signal to the message of an ID.
type Signal struct {
	// To is the key of the queue of that message. Empty means the queue of the message that is acked.
	To, ID, Data string
}

func (s Signal) followingWords(key string) []string {
	return []string{"SIGNAL", or(s.To, key), s.ID, s.Data}
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// AckSend acks a message and sends the messages and signals that follow from it, in one step: all of it or nothing. It
// returns their ids, an empty one where an id is taken, and for a signal "1", or "0" if nothing could get it. The error is
// ErrLeaseLost if the lease was lost, and nothing was done.
func (q *Queue) AckSend(ctx context.Context, receipt int64, following ...Following) ([]string, error) {
	words := append([]string{number(receipt)}, followingWords(following, q.key)...)
	reply, err := q.changeReceipts(ctx, "ACKSEND", words, isThere)
	ids, err := read(reply, err, func(reply interface{}) *[]string { return orNil(texts)(effectsAmong(following).rest(reply)) })
	if err == nil && ids == nil {
		err = ErrLeaseLost
	}
	if err != nil {
		return nil, err
	}
	return *ids, nil
}

func (q *Queue) settle(ctx context.Context, verb string, receipts []int64, last []string) (int, error) {
	if len(receipts) == 0 {
		return 0, nil
	}
	all := func(reply interface{}) bool { return integer(reply) == int64(len(receipts)) }
	reply, err := q.changeReceipts(ctx, verb, append(numbers(receipts), last...), all)
	return read(reply, err, whole)
}

// isThere reports whether a reply is not null.
func isThere(reply interface{}) bool { return reply != nil }

func followingWords(following []Following, key string) []string {
	words := effectsAmong(following).words()
	for _, one := range following {
		words = append(words, one.followingWords(key)...)
	}
	return words
}

func nackWords(options []NackOption) (words []string) {
	for _, one := range options {
		words = append(words, one.nackWords()...)
	}
	return words
}
