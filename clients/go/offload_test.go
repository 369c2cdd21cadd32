package dq_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"dq"
)

type shelf map[string][]byte

func (s shelf) Get(_ context.Context, key string) ([]byte, error)     { return s[key], nil }
func (s shelf) Put(_ context.Context, key string, value []byte) error { s[key] = value; return nil }
func (s shelf) Delete(_ context.Context, key string) error            { delete(s, key); return nil }

func TestWhatIsKeptElsewhereGoesWithItsRecord(t *testing.T) {
	q, store := newQueue(t), shelf{}
	cli := connect(t)
	_, err := cli.Do("DEL", q.Key()+":offload")
	must(t, err)
	offload := &dq.Offload{Store: store, Cli: cli, Above: 10}
	q.Middleware = []dq.Middleware{offload}
	sweep := func(after time.Duration, want int) {
		t.Helper()
		deleted, err := offload.Sweep(ctx, q.Key(), after)
		must(t, err)
		equal(t, "deleted", deleted, want)
	}
	_, _, err = offload.Seal(q.Key(), "never-sent", make([]byte, 11), nil)
	must(t, err)
	send(t, q, strings.Repeat("x", 11), dq.ID("waits"))
	sweep(time.Hour, 0)
	sweep(-time.Second, 1)
	ctx, stop := context.WithCancel(ctx)
	worker := dq.Worker{Queue: q, Handler: func(ctx context.Context, m *dq.Message) error {
		equal(t, "payload", string(m.Payload), strings.Repeat("x", 11))
		stop()
		return nil
	}}
	must(t, worker.Run(ctx))
	sweep(-time.Second, 1)
	equal(t, "kept", len(store), 0)
}
