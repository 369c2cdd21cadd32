// Package delayqueue has the names of github.com/hdt3213/delayqueue over a dq queue, so that a program that uses that
// library moves by changing one import.
//
// The queue lives in the server: messages are due to the millisecond, wait for no consumer's tick, and a payload cannot
// vanish. docs/drivers/go.md says where this package differs from the library on purpose. Package dq, on which it is built,
// can do more.
package delayqueue

import (
	"context"
	"errors"
	"fmt"
	"log"
	"runtime/debug"
	"sync"
	"time"

	"dq"
)

// RedisCli is all that a queue needs of a Redis client. Package dq/redigo makes one of a pool of redigo.
type RedisCli = dq.RedisCli

// NilErr may be returned by a RedisCli instead of a null reply.
var NilErr = dq.ErrNil

// CallbackFunc does the work of a message. It returns true when the work is done, and false to get the message again.
type CallbackFunc = func(string) bool

// Logger gets the errors.
type Logger interface {
	Printf(format string, v ...interface{})
}

// DelayQueue sends messages that are due later, and calls a function for each when it is due. It may be used by several
// goroutines; its With... methods may not.
type DelayQueue struct {
	key    string
	queue  *dq.Queue
	cli    RedisCli
	logger Logger

	callback      CallbackFunc
	concurrent    uint
	fetchLimit    uint
	fetchInterval time.Duration
	lease         time.Duration
	retries       uint
	nackDelay     time.Duration

	mutex    sync.Mutex
	listener EventListener
	stop     context.CancelFunc // nil when it is not running
}

type (
	hashTagOption struct{}
	prefixOption  string
	retriesOption int
	ttlOption     time.Duration
)

// UseHashTagKey makes NewQueue0 put the key of the queue into braces, so that it is wholly a hash tag.
func UseHashTagKey() interface{} { return hashTagOption{} }

// UseCustomPrefix makes NewQueue0 use another prefix of the key than dp.
func UseCustomPrefix(prefix string) interface{} { return prefixOption(prefix) }

// WithRetryCount is an option of a message: how often it is delivered again after a failure. -1 means always.
func WithRetryCount(count int) interface{} { return retriesOption(count) }

// WithMsgTTL is an option of a message: how long after its time it is dead if it is not consumed by then.
func WithMsgTTL(d time.Duration) interface{} { return ttlOption(d) }

const (
	defaultConcurrent  = 1
	defaultInterval    = time.Second
	defaultMaxConsume  = 5 * time.Second
	defaultRetries     = 3
	defaultPrefix      = "dp"
	pauseAfterFailures = time.Second
)

// NewQueue0 returns the queue of a name, whose key is dp:name. Its options are a CallbackFunc, UseHashTagKey and
// UseCustomPrefix.
func NewQueue0(name string, cli RedisCli, opts ...interface{}) *DelayQueue {
	if name == "" {
		panic("name is required")
	}
	if cli == nil {
		panic("cli is required")
	}
	q := &DelayQueue{
		cli:           cli,
		logger:        log.Default(),
		concurrent:    defaultConcurrent,
		fetchInterval: defaultInterval,
		lease:         defaultMaxConsume,
		retries:       defaultRetries,
	}
	prefix, hashTag := defaultPrefix, false
	for _, opt := range opts {
		switch o := opt.(type) {
		case CallbackFunc:
			q.callback = o
		case prefixOption:
			prefix = string(o)
		case hashTagOption:
			hashTag = true
		}
	}
	q.key = prefix + ":" + name
	if hashTag {
		q.key = "{" + q.key + "}"
	}
	q.queue = dq.NewQueue(cli, q.key)
	return q
}

// WithCallback sets the function that is called for each message.
func (q *DelayQueue) WithCallback(callback CallbackFunc) *DelayQueue {
	q.callback = callback
	return q
}

// WithLogger sets the logger for errors of consuming. The default is log.Default().
func (q *DelayQueue) WithLogger(logger Logger) *DelayQueue {
	q.logger = logger
	return q
}

// WithFetchInterval sets for how long one fetch waits at the server, 1 second by default. A message does not wait for it.
// It must be shorter than the read timeout of the client.
func (q *DelayQueue) WithFetchInterval(d time.Duration) *DelayQueue {
	q.fetchInterval = d
	return q
}

// WithScriptPreload does nothing: there are no scripts.
func (q *DelayQueue) WithScriptPreload(bool) *DelayQueue { return q }

// WithMaxConsumeDuration sets how long a callback may take, 5 seconds by default. After it the message is delivered again,
// and the return value of the callback counts no more. 0 means the default.
func (q *DelayQueue) WithMaxConsumeDuration(d time.Duration) *DelayQueue {
	q.lease = defaultMaxConsume
	if d > 0 {
		q.lease = d
	}
	return q
}

// WithFetchLimit sets how many messages this instance has at most. 0 means as many as WithConcurrent says. It never has
// more than that.
func (q *DelayQueue) WithFetchLimit(limit uint) *DelayQueue {
	q.fetchLimit = limit
	return q
}

// WithConcurrent sets how many callbacks run at once, 1 by default. It panics while the queue is consumed.
func (q *DelayQueue) WithConcurrent(c uint) *DelayQueue {
	if c == 0 {
		panic("concurrent cannot be 0")
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.stop != nil {
		panic("operation cannot be performed during running")
	}
	q.concurrent = c
	return q
}

// WithDefaultRetryCount sets how often a message that has no WithRetryCount is delivered again after a failure, 3 by
// default.
func (q *DelayQueue) WithDefaultRetryCount(count uint) *DelayQueue {
	q.retries = count
	return q
}

// WithNackRedeliveryDelay sets how long a message waits after its callback has returned false, 0 by default. A message
// whose callback takes too long does not wait.
func (q *DelayQueue) WithNackRedeliveryDelay(d time.Duration) *DelayQueue {
	q.nackDelay = d
	return q
}

// MessageInfo names a message that was sent, for TryIntercept.
type MessageInfo struct {
	id string
}

// ID returns the id of the message.
func (msg *MessageInfo) ID() string { return msg.id }

// SendScheduleMsgV2 sends a message that is due at t.
func (q *DelayQueue) SendScheduleMsgV2(payload string, t time.Time, opts ...interface{}) (*MessageInfo, error) {
	return q.send(payload, dq.At(t), opts)
}

// SendDelayMsgV2 sends a message that is due after this time, by the clock of the server.
func (q *DelayQueue) SendDelayMsgV2(payload string, duration time.Duration, opts ...interface{}) (*MessageInfo, error) {
	if duration < 0 {
		duration = 0
	}
	return q.send(payload, dq.Delay(duration), opts)
}

// SendScheduleMsg is SendScheduleMsgV2 without the MessageInfo.
func (q *DelayQueue) SendScheduleMsg(payload string, t time.Time, opts ...interface{}) error {
	_, err := q.SendScheduleMsgV2(payload, t, opts...)
	return err
}

// SendDelayMsg is SendDelayMsgV2 without the MessageInfo.
func (q *DelayQueue) SendDelayMsg(payload string, duration time.Duration, opts ...interface{}) error {
	_, err := q.SendDelayMsgV2(payload, duration, opts...)
	return err
}

func (q *DelayQueue) send(payload string, due dq.SendOption, opts []interface{}) (*MessageInfo, error) {
	options, retries := []dq.SendOption{due}, int(q.retries)
	for _, opt := range opts {
		switch o := opt.(type) {
		case retriesOption:
			retries = int(o)
		case ttlOption:
			options = append(options, dq.TTL(time.Duration(o)))
		}
	}
	id, err := q.queue.Send(context.Background(), []byte(payload), append(options, dq.Retries(retries))...)
	if err != nil {
		return nil, err
	}
	q.report(NewMessageEvent)
	return &MessageInfo{id: id}, nil
}

// The states that InterceptResult names.
const (
	StatePending    = "pending"
	StateReady      = "ready"
	StateReadyRetry = "ready_to_retry"
	StateConsuming  = "consuming"
	StateUnknown    = "unknown"
)

// InterceptResult is the state in which TryIntercept found the message.
type InterceptResult struct {
	// Intercepted is true if the message was waiting, and will not be delivered.
	Intercepted bool
	// State is where the message was: pending, ready, ready_to_retry after a failure, consuming, or unknown.
	State string
}

// TryIntercept cancels a message. One that is being consumed or waits after a failure is not intercepted, but it is not
// delivered again.
func (q *DelayQueue) TryIntercept(msg *MessageInfo) (*InterceptResult, error) {
	states, err := q.queue.Cancel(context.Background(), msg.id)
	if err != nil {
		return nil, err
	}
	switch states[0] {
	case dq.Delayed:
		return &InterceptResult{Intercepted: true, State: StatePending}, nil
	case dq.Ready:
		return &InterceptResult{Intercepted: true, State: StateReady}, nil
	case dq.Retrying:
		return &InterceptResult{State: StateReadyRetry}, nil
	case dq.Running:
		return &InterceptResult{State: StateConsuming}, nil
	}
	return &InterceptResult{State: StateUnknown}, nil
}

// StartConsume begins to call the callback for messages that are due. It returns a channel that is closed when StopConsume
// was called and the last callback has returned. It panics if there is no callback.
func (q *DelayQueue) StartConsume() (done <-chan struct{}) {
	if q.callback == nil {
		panic("this instance has no callback")
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.stop != nil {
		panic("operation cannot be performed during running")
	}
	ctx, stop := context.WithCancel(context.Background())
	q.stop = stop
	ended := make(chan struct{})
	worker := q.worker()
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := worker.Run(ctx); err != nil {
				q.logger.Printf("consume error: %v", err)
				select {
				case <-ctx.Done():
				case <-time.After(pauseAfterFailures):
				}
			}
		}
	}()
	return ended
}

// StopConsume fetches no more messages. The callbacks that run have as long as they may take. It may be called by a callback.
func (q *DelayQueue) StopConsume() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.stop != nil {
		q.stop()
		q.stop = nil
	}
}

// consume calls the callback. A panic in it is a failure like any other. One that ends its goroutine fails in the Worker.
func (q *DelayQueue) consume(_ context.Context, m *dq.Message) (err error) {
	failed := func(text string) error { return dq.Retry{Err: errors.New(text), After: q.nackDelay} }
	err = failed("panic: nil")
	defer func() {
		if caught := recover(); caught != nil {
			err = failed(fmt.Sprintf("panic: %v\n%s", caught, debug.Stack()))
		}
	}()
	if !q.callback(string(m.Payload)) {
		return failed("the callback returned false")
	}
	return nil
}

func (q *DelayQueue) worker() *dq.Worker {
	concurrency := q.concurrent
	if q.fetchLimit > 0 && q.fetchLimit < concurrency {
		concurrency = q.fetchLimit
	}
	return &dq.Worker{
		Queue:        q.queue,
		Handler:      q.consume,
		Concurrency:  int(concurrency),
		Lease:        q.lease,
		NoHeartbeats: true,
		// A callback that takes too long ends its lease, too. WithRetryCount alone says how often that may happen.
		LostWorkers: -1,
		Block:       q.fetchInterval,
		Grace:       q.lease,
		Logf:        func(format string, args ...interface{}) { q.logger.Printf(format, args...) },
		Observe:     q.observe,
	}
}

// GetPendingCount returns the number of messages whose time has not come, and of those that wait after a failure.
func (q *DelayQueue) GetPendingCount() (int64, error) {
	return q.count(dq.Delayed, dq.Retrying)
}

// GetReadyCount returns the number of messages whose time has come, and that no consumer has yet.
func (q *DelayQueue) GetReadyCount() (int64, error) { return q.count(dq.Ready) }

// GetProcessingCount returns the number of messages that are being consumed.
func (q *DelayQueue) GetProcessingCount() (int64, error) { return q.count(dq.Running) }

func (q *DelayQueue) count(states ...dq.State) (sum int64, err error) {
	for _, state := range states {
		n, err := q.queue.Len(context.Background(), state)
		if err != nil {
			return 0, err
		}
		sum += int64(n)
	}
	return sum, nil
}
