package delayqueue_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"dq/delayqueue"
	"dq/redigo"
)

// url is the server of the tests.
var url = os.Getenv("DQ_TEST_URL")

func TestMain(m *testing.M) {
	if url == "" {
		fmt.Println("skipped: DQ_TEST_URL names no server")
		return
	}
	os.Exit(m.Run())
}

func connect(t testing.TB) *redigo.Client {
	cli := redigo.Dial(url)
	t.Cleanup(func() { cli.Close() })
	return cli
}

// onlyDo is a client as applications write it: it has only Do, and each call has a connection of its own.
type onlyDo struct{ delayqueue.RedisCli }

// newQueue returns an empty queue that is named after the test.
func newQueue(t testing.TB, opts ...interface{}) *delayqueue.DelayQueue {
	t.Helper()
	cli := connect(t)
	_, err := cli.Do("DEL", "dp:"+t.Name(), "dp:"+t.Name()+":events")
	must(t, err)
	return delayqueue.NewQueue0(t.Name(), onlyDo{cli}, opts...).WithFetchInterval(100 * time.Millisecond)
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

func waitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for begun := time.Now(); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func counts(t testing.TB, q interface {
	GetPendingCount() (int64, error)
	GetReadyCount() (int64, error)
	GetProcessingCount() (int64, error)
}) string {
	t.Helper()
	pending, err := q.GetPendingCount()
	must(t, err)
	ready, err := q.GetReadyCount()
	must(t, err)
	processing, err := q.GetProcessingCount()
	must(t, err)
	return fmt.Sprint(pending, " ", ready, " ", processing)
}
