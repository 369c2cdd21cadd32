package dq

import "sync"

// done is a message to be acked, with its result if it has one. A message with a cost, or with messages to send, is
// acked by a command of its own.
type done struct {
	message *Message
	result  *string
}

type doneList []done

// words returns the options of FETCH that ack the messages. They all have a result or none has.
func (l doneList) words() []string {
	if len(l) == 0 {
		return nil
	}
	words, results := []string{"ACK", count(len(l))}, []string{"RESULTS", count(len(l))}
	for _, one := range l {
		words = append(words, number(one.message.Receipt))
		if one.result != nil {
			results = append(results, *one.result)
		}
	}
	if l[0].result != nil {
		words = append(words, results...)
	}
	return words
}

// acks collects the messages that are done. Messages that are done before the next FETCH is sent are acked by it.
// Messages that are done while a FETCH waits are acked by a command of their own, because their group may wait for
// them.
type acks struct {
	mutex sync.Mutex
	// changed wakes ackLate when late has grown or the worker is to end.
	changed *sync.Cond
	// next is for the next FETCH, late for ackLate.
	next, late doneList
	// beforeFetch is whether there will be a FETCH that is not sent yet.
	beforeFetch bool
	closed      bool
}

func (a *acks) init() { a.changed = sync.NewCond(&a.mutex) }

func (a *acks) add(one done) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.beforeFetch {
		a.next = append(a.next, one)
	} else {
		a.late = append(a.late, one)
		a.changed.Signal()
	}
}

// beginFetch returns the messages that a FETCH acks, when it is about to be sent: those with a result, or those
// without.
func (a *acks) beginFetch() (now doneList) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.beforeFetch = false
	for _, one := range a.next {
		if len(now) < mostReceipts && (len(now) == 0 || (one.result == nil) == (now[0].result == nil)) {
			now = append(now, one)
		} else {
			a.late = append(a.late, one)
		}
	}
	a.next = nil
	if len(a.late) > 0 {
		a.changed.Signal()
	}
	return now
}

// endFetch notes that the reply has come. Until the next FETCH is sent, what is done waits for it.
func (a *acks) endFetch() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.beforeFetch = true
}

// noMoreFetches notes that no ack may wait for a FETCH any more.
func (a *acks) noMoreFetches() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.beforeFetch = false
	a.late, a.next = append(a.late, a.next...), nil
	a.changed.Signal()
}

// addLate adds a message that a FETCH could not ack.
func (a *acks) addLate(one done) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.late = append(a.late, one)
	a.changed.Signal()
}

// close notes that no handler runs any more. ackLate ends when it has acked the rest.
func (a *acks) close() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.closed = true
	a.changed.Signal()
}

// takeLate waits for messages that are to be acked now. It returns none when there will be none.
func (a *acks) takeLate() doneList {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for len(a.late) == 0 && !a.closed {
		a.changed.Wait()
	}
	taken := a.late
	a.late = nil
	return taken
}

// ackLate acks the messages that no FETCH acks, until the worker ends.
func (r *run) ackLate() {
	for {
		taken := r.acks.takeLate()
		if len(taken) == 0 {
			return
		}
		var plain []*Message
		for _, one := range taken {
			if one.result == nil {
				plain = append(plain, one.message)
			} else {
				r.ackNow(one.message, outcome{result: one.result})
			}
		}
		for _, these := range byQueue(plain) {
			_, _ = r.settle(these, "ACK", nil)
		}
	}
}
