package dq_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"dq"
	"dq/redigo"
)

var ctx = context.Background()

// url is the server of the tests.
var url = os.Getenv("DQ_TEST_URL")

func TestMain(m *testing.M) {
	if url == "" {
		fmt.Println("skipped: DQ_TEST_URL names no server")
		return
	}
	if key := os.Getenv("DQ_TEST_KILL"); key != "" {
		kill(key)
	}
	os.Exit(m.Run())
}

func connect(t testing.TB) *redigo.Client {
	cli := redigo.Dial(url)
	t.Cleanup(func() { cli.Close() })
	return cli
}

// newQueue returns an empty queue that is named after the test.
func newQueue(t testing.TB, options ...dq.QueueOption) *dq.Queue {
	return queueOver(t, connect(t), options...)
}

func queueOver(t testing.TB, cli dq.RedisCli, options ...dq.QueueOption) *dq.Queue {
	t.Helper()
	_, err := cli.Do("DEL", t.Name())
	must(t, err)
	q := dq.NewQueue(cli, t.Name())
	must(t, q.Create(ctx, options...))
	return q
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func send(t testing.TB, q *dq.Queue, payload string, options ...dq.SendOption) string {
	t.Helper()
	id, err := q.Send(ctx, []byte(payload), options...)
	must(t, err)
	return id
}

func fetch(t testing.TB, q *dq.Queue, options ...dq.FetchOption) []*dq.Message {
	t.Helper()
	messages, err := q.Fetch(ctx, options...)
	must(t, err)
	return messages
}

func get(t testing.TB, q *dq.Queue, id string) dq.Record {
	t.Helper()
	record, err := q.Get(ctx, id)
	must(t, err)
	if record == nil {
		t.Fatalf("there is no %s", id)
	}
	return *record
}

func infoOf(t testing.TB, q *dq.Queue, name string) int64 {
	t.Helper()
	info, err := q.Info(ctx)
	must(t, err)
	return info.Int(name)
}

// waitFor waits for a condition. Its end is only there so that a test that fails ends.
func waitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for begun := time.Now(); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func emptied(t testing.TB, q *dq.Queue) {
	t.Helper()
	waitFor(t, "an empty queue", func() bool {
		n, err := q.Len(ctx)
		must(t, err)
		return n == 0
	})
}

// running runs a worker until the function that it returns is called, which returns the result of Run.
func running(t testing.TB, worker *dq.Worker) (stop func() error) {
	t.Helper()
	if worker.Logf == nil {
		worker.Logf = func(string, ...interface{}) {}
	}
	running, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(running) }()
	var once sync.Once
	var result error
	stop = func() error {
		once.Do(func() {
			end()
			select {
			case result = <-ended:
			case <-time.After(30 * time.Second):
				result = errors.New("the worker does not end")
			}
		})
		return result
	}
	t.Cleanup(func() { stop() })
	return stop
}

// onlyDo hides the methods of a client besides Do.
type onlyDo struct{ dq.RedisCli }

// losing is a client that loses the replies for which lose returns true. The command is run all the same.
type losing struct {
	dq.RedisCli
	lose func(args []interface{}) bool
}

func (c losing) Do(args ...interface{}) (interface{}, error) {
	reply, err := c.RedisCli.Do(args...)
	if c.lose(args) {
		return nil, errors.New("connection reset by peer")
	}
	return reply, err
}
