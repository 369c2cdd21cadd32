package dq

import (
	"context"
	"sync"
	"time"
)

// leases are the messages that are being handled.
type leases struct {
	mutex   sync.Mutex
	running map[*Message]*held
}

type held struct {
	end   context.CancelFunc
	since time.Time
}

// add begins the handling of a message. It returns the context of its handler.
func (l *leases) add(m *Message, limit time.Duration) context.Context {
	one := &held{since: time.Now()}
	var ctx context.Context
	if limit > 0 {
		ctx, one.end = context.WithTimeout(context.Background(), limit)
	} else {
		ctx, one.end = context.WithCancel(context.Background())
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.running[m] = one
	return ctx
}

// drop ends the handling of a message. It returns false if it has ended before.
func (l *leases) drop(m *Message) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	one := l.running[m]
	if one == nil {
		return false
	}
	one.end()
	delete(l.running, m)
	return true
}

func (l *leases) holds(m *Message) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.running[m] != nil
}

// takeAll ends the handling of all messages, and returns them.
func (l *leases) takeAll() (messages []*Message) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for m, one := range l.running {
		one.end()
		messages = append(messages, m)
	}
	l.running = map[*Message]*held{}
	return messages
}

// toExtend returns the messages that are not handled for longer than the limit.
func (l *leases) toExtend(limit time.Duration) (messages []*Message) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for m, one := range l.running {
		if limit <= 0 || time.Since(one.since) < limit {
			messages = append(messages, m)
		}
	}
	return messages
}

// beat extends the leases of the handled messages, three times in each lease, so that one beat may get lost.
func (r *run) beat(ended <-chan struct{}) {
	if r.NoHeartbeats {
		return
	}
	ticker := time.NewTicker(r.Lease/3 + 1)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
		}
		for _, messages := range byQueue(r.leases.toExtend(r.TimeLimit)) {
			r.extend(messages[0].Queue, messages)
		}
	}
}

func (r *run) extend(queue *Queue, messages []*Message) {
	kept, err := queue.Touch(r.settling, r.Lease, Receipts(messages...))
	if err != nil {
		r.Logf("dq: heartbeat failed: %v", err)
		return
	}
	if kept == len(messages) {
		return
	}
	for _, m := range messages {
		// A message that was finished in the meantime has no lease any more.
		if kept, err := queue.Touch(r.settling, r.Lease, []int64{m.Receipt}); err == nil && kept == 0 && r.leases.drop(m) {
			r.Logf("dq: the lease of %s is lost", m.ID)
		}
	}
}
