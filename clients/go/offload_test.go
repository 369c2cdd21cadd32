package dq_test

import (
	"context"
	"encoding/json"
	"os"
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

func TestWhatAWorkerHasOpenedGoesWithItsRecord(t *testing.T) {
	var given struct {
		Offload struct {
			Above   int
			Payload string
			Named   []string
			Queues  []struct {
				DeadTo string
				Goes   bool
			}
		}
	}
	file, err := os.ReadFile("../../tests/conformance/secrets.json")
	must(t, err)
	must(t, json.Unmarshal(file, &given))
	for _, one := range given.Offload.Queues {
		q, store := newQueue(t, dq.DeadTo(one.DeadTo)), shelf{}
		offload := &dq.Offload{Store: store, Cli: connect(t), Above: given.Offload.Above, Queues: given.Offload.Named}
		seal := func(id string) ([]byte, map[string]string) {
			payload, headers, err := offload.Seal(q.Key(), id, []byte(given.Offload.Payload), nil)
			must(t, err)
			return payload, headers
		}
		payload, headers := seal("first")
		send(t, q, string(payload), dq.ID("first"), dq.Headers(headers))
		messages, err := q.Fetch(ctx)
		must(t, err)
		opened, _, err := offload.Open(q.Key(), "first", messages[0].Payload, messages[0].Headers)
		must(t, err)
		equal(t, "payload", string(opened), given.Offload.Payload)
		seal("second")
		first := headers["dq-offload"]
		equal(t, "kept", store[first] != nil, true)
		_, err = q.Ack(ctx, []int64{messages[0].Receipt})
		must(t, err)
		seal("third")
		equal(t, "gone with "+one.DeadTo, store[first] == nil, one.Goes)
	}
}
