package delayqueue

import (
	"log"
	"time"
)

// Publisher only sends messages.
type Publisher struct {
	inner *DelayQueue
}

// NewPublisher0 returns a Publisher for the queue of a name, with the options of NewQueue0.
func NewPublisher0(name string, cli RedisCli, opts ...interface{}) *Publisher {
	return &Publisher{NewQueue0(name, cli, opts...)}
}

// WithLogger sets the logger for errors.
func (p *Publisher) WithLogger(logger *log.Logger) *Publisher {
	p.inner.WithLogger(logger)
	return p
}

// SendScheduleMsg sends a message that is due at t.
func (p *Publisher) SendScheduleMsg(payload string, t time.Time, opts ...interface{}) error {
	return p.inner.SendScheduleMsg(payload, t, opts...)
}

// SendDelayMsg sends a message that is due after this time.
func (p *Publisher) SendDelayMsg(payload string, duration time.Duration, opts ...interface{}) error {
	return p.inner.SendDelayMsg(payload, duration, opts...)
}
