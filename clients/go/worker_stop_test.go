package dq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"dq"
)

func TestAStopLetsHandlersFinish(t *testing.T) {
	q := newQueue(t, dq.Retain(time.Hour))
	_, err := q.SendMany(ctx, make([][]byte, 5))
	must(t, err)
	begun, end := make(chan bool, 5), make(chan bool)
	stop := running(t, &dq.Worker{Queue: q, Concurrency: 2, Handler: func(handling context.Context, m *dq.Message) error {
		begun <- true
		<-end
		return handling.Err()
	}})
	<-begun
	<-begun
	time.AfterFunc(50*time.Millisecond, func() { close(end) })
	must(t, stop())
	equal(t, "finished", infoOf(t, q, "finished"), int64(2))
	equal(t, "ready", infoOf(t, q, "ready"), int64(3))
	equal(t, "nacked", infoOf(t, q, "nacked"), int64(0))
}

func TestAStopGivesBackWhatTakesTooLong(t *testing.T) {
	q := newQueue(t)
	send(t, q, "x", dq.ID("a"))
	begun, ended := make(chan bool), make(chan error, 1)
	stop := running(t, &dq.Worker{Queue: q, Grace: 50 * time.Millisecond, Handler: func(handling context.Context, m *dq.Message) error {
		close(begun)
		<-handling.Done()
		ended <- handling.Err()
		return nil
	}})
	<-begun
	must(t, stop())
	equal(t, "context", errors.Is(<-ended, context.Canceled), true)
	r := get(t, q, "a")
	equal(t, "state", r.State, dq.Ready)
	equal(t, "failures", r.Failures, 0)
	equal(t, "attempt", fetch(t, q)[0].Attempt, 1)
}

func TestAStoppingWorkerIsNotLateOverItsBlock(t *testing.T) {
	q := newQueue(t)
	stop := running(t, &dq.Worker{Queue: q, Block: time.Hour, Handler: func(context.Context, *dq.Message) error { return nil }})
	waitFor(t, "a fetch that waits", func() bool { return infoOf(t, q, "blocked-clients") == 1 })
	must(t, stop())
	equal(t, "waiting", infoOf(t, q, "blocked-clients"), int64(0))
}

func TestAReplyThatIsLostDuringAStopIsGivenBack(t *testing.T) {
	running, stop := context.WithCancel(ctx)
	q := queueOver(t, losing{connect(t), func(args []interface{}) bool {
		if args[0] != "DQ.FETCH" || args[3] != "BLOCK" {
			return false
		}
		stop()
		return true
	}})
	send(t, q, "x", dq.ID("a"))
	worker := dq.Worker{Queue: q, Logf: t.Logf, Handler: func(context.Context, *dq.Message) error { return nil }}
	must(t, worker.Run(running))
	r := get(t, q, "a")
	equal(t, "state", r.State, dq.Ready)
	equal(t, "failures", r.Failures, 0)
	equal(t, "delivered", infoOf(t, q, "delivered"), int64(1))
}
