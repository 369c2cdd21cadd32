package dq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dq"
	"dq/redigo"
)

func TestALostReplyCostsNoLeaseAndNoAttempt(t *testing.T) {
	var fetches int32
	q := queueOver(t, losing{connect(t), func(args []interface{}) bool {
		return args[0] == "DQ.FETCH" && atomic.AddInt32(&fetches, 1)%2 == 1
	}})
	const all = 50
	_, err := q.SendMany(ctx, make([][]byte, all))
	must(t, err)
	var handled int32
	stop := running(t, &dq.Worker{Queue: q, Concurrency: 10, Block: 20 * time.Millisecond,
		Handler: func(_ context.Context, m *dq.Message) error {
			if m.Attempt != 1 {
				t.Errorf("attempt %d", m.Attempt)
			}
			atomic.AddInt32(&handled, 1)
			return nil
		}})
	emptied(t, q)
	must(t, stop())
	equal(t, "handled", handled, all)
	equal(t, "delivered", infoOf(t, q, "delivered"), int64(all))
	equal(t, "acked", infoOf(t, q, "acked"), int64(all))
}

func TestAWorkerSurvivesClosedConnections(t *testing.T) {
	cli := as(t, "killed", "+@all")
	q := queueOver(t, cli, dq.Retain(time.Hour), dq.Dedup(time.Minute))
	var handled sync.Map
	stop := running(t, &dq.Worker{Queue: q, Concurrency: 3, Handler: func(_ context.Context, m *dq.Message) error {
		handled.Store(string(m.Payload), true)
		return nil
	}})
	other := connect(t)
	for i := 0; i < 50; i++ {
		send(t, q, fmt.Sprint(i))
		if i%10 == 5 {
			_, err := other.Do("CLIENT", "KILL", "USER", "killed")
			must(t, err)
		}
	}
	waitFor(t, "all messages", func() bool {
		n, err := q.Len(ctx, dq.Finished)
		return err == nil && n == 50
	})
	must(t, stop())
	for i := 0; i < 50; i++ {
		if _, ok := handled.Load(fmt.Sprint(i)); !ok {
			t.Errorf("%d was not handled", i)
		}
	}
}

func as(t *testing.T, user string, rights ...string) *redigo.Client {
	admin := connect(t)
	words := []interface{}{"ACL", "SETUSER", user, "reset", "on", ">secret", "~*"}
	for _, right := range rights {
		words = append(words, right)
	}
	_, err := admin.Do(words...)
	must(t, err)
	cli := redigo.Dial(strings.Replace(url, "redis://", "redis://"+user+":secret@", 1))
	t.Cleanup(func() { cli.Close() })
	return cli
}

func TestAPermanentErrorEndsTheWorker(t *testing.T) {
	cli := connect(t)
	_, err := cli.Do("SET", t.Name(), "a text")
	must(t, err)
	handler := func(context.Context, *dq.Message) error { return nil }
	err = (&dq.Worker{Queue: dq.NewQueue(cli, t.Name()), Handler: handler}).Run(ctx)
	equal(t, "error", errors.Is(err, dq.ErrWrongType), true)
	if (&dq.Worker{Handler: handler}).Run(ctx) == nil {
		t.Fatal("a worker without a queue runs")
	}
}

func TestAWorkerRunsOverAClientWithOnlyDo(t *testing.T) {
	q := queueOver(t, onlyDo{connect(t)})
	_, err := q.SendMany(ctx, make([][]byte, 20))
	must(t, err)
	stop := running(t, &dq.Worker{Queue: q, Concurrency: 2, Block: 50 * time.Millisecond,
		Handler: func(context.Context, *dq.Message) error { return nil }})
	emptied(t, q)
	must(t, stop())
	equal(t, "acked", infoOf(t, q, "acked"), int64(20))
}

func TestAUserWithoutTheRightToUnblockWaitsForTheBlock(t *testing.T) {
	q := queueOver(t, as(t, "plain", "+@all", "-client|id", "-client|unblock"))
	waiting, end := context.WithTimeout(ctx, time.Millisecond)
	defer end()
	_, err := q.Fetch(waiting, dq.Block(50*time.Millisecond))
	equal(t, "fetch", errors.Is(err, context.DeadlineExceeded), true)
}
