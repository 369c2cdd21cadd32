package delayqueue

import (
	"context"
	"fmt"
	"log"
	"strconv"
	"sync"
	"time"

	"dq"
)

// Monitor counts the messages of a queue, and listens to the events of all instances that have called EnableReport.
type Monitor struct {
	inner *DelayQueue
}

// NewMonitor0 returns a Monitor of the queue of a name, with the options of NewQueue0.
func NewMonitor0(name string, cli RedisCli, opts ...interface{}) *Monitor {
	return &Monitor{NewQueue0(name, cli, opts...)}
}

// WithLogger sets the logger for errors.
func (m *Monitor) WithLogger(logger *log.Logger) *Monitor {
	m.inner.WithLogger(logger)
	return m
}

// GetPendingCount returns the number of messages whose time has not come, and of those that wait after a failure.
func (m *Monitor) GetPendingCount() (int64, error) { return m.inner.GetPendingCount() }

// GetReadyCount returns the number of messages whose time has come, and that no consumer has yet.
func (m *Monitor) GetReadyCount() (int64, error) { return m.inner.GetReadyCount() }

// GetProcessingCount returns the number of messages that are being consumed.
func (m *Monitor) GetProcessingCount() (int64, error) { return m.inner.GetProcessingCount() }

// Events go through a stream beside the queue, because a RedisCli can wait for a stream, and not for a channel.
const (
	// eventsKept is about how many events the stream has: enough for a listener that is a moment late.
	eventsKept = 10_000
	// eventsLife is how long the stream stays after its last events. It is extended more often than that.
	eventsLife = time.Hour
	// eventsWait is how long one command waits for events.
	eventsWait = time.Second
)

func (q *DelayQueue) eventsKey() string { return q.key + ":events" }

// reporter is the listener that reports to Monitors.
type reporter struct {
	queue *DelayQueue

	mutex    sync.Mutex
	extended time.Time
}

func (r *reporter) OnEvent(event *Event) {
	key := r.queue.eventsKey()
	_, err := r.queue.cli.Do("XADD", key, "MAXLEN", "~", strconv.Itoa(eventsKept), "*", "event", event.encode())
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err == nil && time.Since(r.extended) > eventsLife/4 {
		_, err = r.queue.cli.Do("PEXPIRE", key, strconv.FormatInt(eventsLife.Milliseconds(), 10))
		r.extended = time.Now()
	}
	if err != nil {
		r.queue.logger.Printf("reporting an event failed: %v", err)
	}
}

// ListenEvent calls the listener for each event from now on. The function that it returns ends that: it is called for no
// event after it.
func (m *Monitor) ListenEvent(listener EventListener) (func(), error) {
	last, err := m.lastEvent()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	go m.listen(ctx, listener, last)
	return stop, nil
}

// lastEvent returns the id of the last event.
func (m *Monitor) lastEvent() (string, error) {
	reply, err := m.inner.cli.Do("XREVRANGE", m.inner.eventsKey(), "+", "-", "COUNT", "1")
	if err != nil && err != NilErr {
		return "", err
	}
	if entries := entriesOf(reply); len(entries) > 0 {
		return entries[0].id, nil
	}
	return "0-0", nil
}

func (m *Monitor) listen(ctx context.Context, listener EventListener, last string) {
	for ctx.Err() == nil {
		entries, err := m.nextEvents(ctx, last)
		if err != nil {
			m.inner.logger.Printf("listening to events failed, trying again: %v", err)
			select {
			case <-ctx.Done():
			case <-time.After(pauseAfterFailures):
			}
			continue
		}
		for _, one := range entries {
			last = one.id
			event, err := decode(one.event)
			if err != nil {
				m.inner.logger.Printf("[listen event] %v", err)
			} else if ctx.Err() == nil {
				listener.OnEvent(event)
			}
		}
	}
}

// nextEvents waits for events after the one of an id. There may be none.
func (m *Monitor) nextEvents(ctx context.Context, last string) ([]entry, error) {
	words := []interface{}{
		"XREAD", "COUNT", "1000", "BLOCK", strconv.FormatInt(eventsWait.Milliseconds(), 10),
		"STREAMS", m.inner.eventsKey(), last,
	}
	var reply interface{}
	var err error
	if blocking, ok := m.inner.cli.(dq.BlockingCli); ok {
		reply, err = blocking.DoBlocking(ctx, eventsWait, words...)
	} else {
		reply, err = m.inner.cli.Do(words...)
	}
	if err != nil && err != NilErr {
		return nil, err
	}
	// One key and its entries: under RESP2 in an array of pairs, under RESP3 in a map.
	switch streams := reply.(type) {
	case []interface{}:
		if len(streams) == 1 {
			if pair, ok := streams[0].([]interface{}); ok && len(pair) == 2 {
				return entriesOf(pair[1]), nil
			}
		}
	case map[interface{}]interface{}:
		for _, entries := range streams {
			return entriesOf(entries), nil
		}
	}
	return nil, nil
}

// entry is an entry of the stream of events.
type entry struct{ id, event string }

func entriesOf(reply interface{}) (entries []entry) {
	elements, _ := reply.([]interface{})
	for _, one := range elements {
		pair, _ := one.([]interface{})
		if len(pair) != 2 {
			continue
		}
		fields, _ := pair[1].([]interface{})
		if len(fields) == 2 {
			entries = append(entries, entry{textOf(pair[0]), textOf(fields[1])})
		}
	}
	return entries
}

func textOf(value interface{}) string {
	if bytes, ok := value.([]byte); ok {
		return string(bytes)
	}
	return fmt.Sprint(value)
}
