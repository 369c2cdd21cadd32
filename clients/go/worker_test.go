package dq_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dq"
)

func TestHandlersDecideTheOutcome(t *testing.T) {
	q := newQueue(t, dq.Retain(time.Hour), dq.Retries(1))
	var mux dq.Mux
	mux.Handle("ok", func(_ context.Context, m *dq.Message) error {
		m.SetResult("did " + string(m.Payload))
		return nil
	})
	mux.Handle("again", func(_ context.Context, m *dq.Message) error {
		if m.Attempt == 1 {
			return fmt.Errorf("wrapped: %w", dq.Retry{Err: errors.New("not yet"), After: 10 * time.Millisecond})
		}
		return nil
	})
	mux.Handle("never", func(context.Context, *dq.Message) error { return dq.Reject{Err: errors.New("no sense")} })
	mux.Handle("broken", func(context.Context, *dq.Message) error { return errors.New(strings.Repeat("x", 5000)) })
	mux.Handle("panics", func(context.Context, *dq.Message) error { panic("at the disco") })
	mux.Handle("snoozes", func(_ context.Context, m *dq.Message) error {
		if time.Since(m.SentAt) < 50*time.Millisecond {
			return dq.Snooze{For: 60 * time.Millisecond, PauseGroup: time.Millisecond}
		}
		return nil
	})
	mux.Handle("json", dq.JSON(func(_ context.Context, value struct{ A int }, m *dq.Message) error {
		m.SetResult(fmt.Sprint(value.A))
		return nil
	}))
	for _, label := range []string{"ok", "again", "never", "broken", "panics", "unknown", "json"} {
		send(t, q, `{"A":`+label, dq.ID(label), dq.Type(label))
	}
	send(t, q, `{"A":7}`, dq.ID("json7"), dq.Type("json"))
	send(t, q, "x", dq.ID("snoozes"), dq.Type("snoozes"), dq.Group("g"))
	stop := running(t, &dq.Worker{Queue: q, Handler: mux.Serve, Concurrency: 3, Consumer: "me"})
	emptied(t, q)
	must(t, stop())

	ok := get(t, q, "ok")
	equal(t, "result", *ok.Result, `did {"A":ok`)
	equal(t, "consumer", ok.Consumer, "me")
	again := get(t, q, "again")
	equal(t, "again", again.State, dq.Finished)
	equal(t, "attempts", again.Attempt, 2)
	equal(t, "error", again.Error, "wrapped: not yet")
	equal(t, "never", get(t, q, "never").Reason, "rejected")
	equal(t, "broken", get(t, q, "broken").Reason, "retries")
	equal(t, "cut", len(get(t, q, "broken").Error), 1000)
	equal(t, "panics", get(t, q, "panics").Error, "panic: at the disco")
	equal(t, "unknown", get(t, q, "unknown").Error, `no handler for type "unknown"`)
	equal(t, "json", get(t, q, "json").Reason, "rejected")
	equal(t, "json", *get(t, q, "json7").Result, "7")
	snoozed := get(t, q, "snoozes")
	equal(t, "snoozed", snoozed.State, dq.Finished)
	equal(t, "attempts", snoozed.Attempt, 1)
	equal(t, "failures", snoozed.Failures, 0)
}

func TestConcurrencyIsTheNumberOfHandlersAtOnce(t *testing.T) {
	q := newQueue(t)
	var now, most, handled int32
	payloads := make([][]byte, 60)
	_, err := q.SendMany(ctx, payloads)
	must(t, err)
	stop := running(t, &dq.Worker{Queue: q, Concurrency: 4, Handler: func(context.Context, *dq.Message) error {
		if n := atomic.AddInt32(&now, 1); n > atomic.LoadInt32(&most) {
			atomic.StoreInt32(&most, n)
		}
		time.Sleep(5 * time.Millisecond)
		atomic.AddInt32(&now, -1)
		atomic.AddInt32(&handled, 1)
		return nil
	}})
	emptied(t, q)
	must(t, stop())
	equal(t, "most", most, 4)
	equal(t, "handled", handled, 60)
	equal(t, "delivered", infoOf(t, q, "delivered"), int64(60))
	equal(t, "acked", infoOf(t, q, "acked"), int64(60))
}

func TestOneMessageAtATimeCostsOneCommandEach(t *testing.T) {
	q, commands := counted(t)
	payloads := make([][]byte, 100)
	_, err := q.SendMany(ctx, payloads)
	must(t, err)
	stop := running(t, &dq.Worker{Queue: q, Handler: func(context.Context, *dq.Message) error { return nil }})
	waitFor(t, "all messages", func() bool { return infoOf(t, q, "acked") == 100 })
	must(t, stop())
	equal(t, "acks of their own", atomic.LoadInt64(commands("DQ.ACK")), int64(0))
	equal(t, "fetches", atomic.LoadInt64(commands("DQ.FETCH")) <= 102, true)
}

// counted returns a queue over a client that counts its commands.
func counted(t *testing.T) (*dq.Queue, func(name string) *int64) {
	var counts sync.Map
	commands := func(name string) *int64 {
		n, _ := counts.LoadOrStore(name, new(int64))
		return n.(*int64)
	}
	q := queueOver(t, losing{connect(t), func(args []interface{}) bool {
		atomic.AddInt64(commands(args[0].(string)), 1)
		return false
	}})
	return q, commands
}

func TestWhatIsDoneWhileAFetchWaitsIsAckedAtOnce(t *testing.T) {
	q := newQueue(t)
	seen := make(chan string, 2)
	goOn := make(chan bool)
	running(t, &dq.Worker{Queue: q, Concurrency: 5, Block: time.Hour, Handler: func(_ context.Context, m *dq.Message) error {
		seen <- string(m.Payload)
		<-goOn
		return nil
	}})
	send(t, q, "1", dq.Group("g"))
	equal(t, "first", <-seen, "1")
	waitFor(t, "a fetch that waits", func() bool { return infoOf(t, q, "blocked-clients") == 1 })
	send(t, q, "2", dq.Group("g"))
	goOn <- true
	equal(t, "second", <-seen, "2")
	goOn <- true
	emptied(t, q)
}

func TestHeartbeatsKeepTheLeaseOfALongHandler(t *testing.T) {
	q := newQueue(t)
	_, err := q.SendMany(ctx, make([][]byte, 3))
	must(t, err)
	stop := running(t, &dq.Worker{Queue: q, Concurrency: 3, Lease: 1500 * time.Millisecond,
		Handler: func(context.Context, *dq.Message) error {
			time.Sleep(2 * time.Second)
			return nil
		}})
	emptied(t, q)
	must(t, stop())
	equal(t, "timeouts", infoOf(t, q, "timeouts"), int64(0))
	equal(t, "acked", infoOf(t, q, "acked"), int64(3))
}

func TestATimeLimitEndsTheContextAndTheHeartbeats(t *testing.T) {
	q := newQueue(t, dq.Retain(time.Hour))
	send(t, q, "x", dq.ID("a"))
	var lost int32
	stop := running(t, &dq.Worker{Queue: q, Concurrency: 2, Lease: time.Second, TimeLimit: 100 * time.Millisecond,
		Observe: func(step dq.Step, m *dq.Message) {
			if step == dq.Lost {
				atomic.AddInt32(&lost, 1)
			}
		},
		Handler: func(handling context.Context, m *dq.Message) error {
			if m.Attempt == 1 {
				<-handling.Done()
				waitFor(t, "the next attempt", func() bool { return get(t, q, "a").Attempt == 2 })
			}
			return nil
		}})
	waitFor(t, "the end of both", func() bool { return infoOf(t, q, "acked") == 1 && atomic.LoadInt32(&lost) == 1 })
	must(t, stop())
	equal(t, "timeouts", infoOf(t, q, "timeouts"), int64(1))
}

func TestALostLeaseEndsTheContext(t *testing.T) {
	q := newQueue(t)
	send(t, q, "x", dq.ID("a"))
	ended := make(chan bool)
	stop := running(t, &dq.Worker{Queue: q, Lease: 300 * time.Millisecond, Handler: func(handling context.Context, m *dq.Message) error {
		if m.Attempt > 1 {
			return nil
		}
		_, err := q.Cancel(ctx, "a")
		must(t, err)
		<-handling.Done()
		close(ended)
		return nil
	}})
	<-ended
	must(t, stop())
	equal(t, "acked", infoOf(t, q, "acked"), int64(0))
}

func TestResultsAndNoResultsAreAckedTogether(t *testing.T) {
	q := newQueue(t, dq.Retain(time.Hour))
	const all = 200
	for i := 0; i < all; i++ {
		send(t, q, fmt.Sprint(i), dq.ID(fmt.Sprint(i)))
	}
	stop := running(t, &dq.Worker{Queue: q, Concurrency: 20, Handler: func(_ context.Context, m *dq.Message) error {
		if len(m.Payload)%2 == 0 {
			m.SetResult("did " + string(m.Payload))
		}
		return nil
	}})
	emptied(t, q)
	must(t, stop())
	for i := 0; i < all; i++ {
		id := fmt.Sprint(i)
		result := get(t, q, id).Result
		if len(id)%2 == 0 {
			equal(t, "result", *result, "did "+id)
		} else {
			equal(t, "no result", result == nil, true)
		}
	}
}

// as returns a client with a user of its own, who has these rights.
func TestTheConsumerIsHostAndProcess(t *testing.T) {
	equal(t, "process", strings.HasSuffix(dq.ConsumerName(), fmt.Sprint(":", os.Getpid())), true)
}

func TestTwoWorkersOfAProcessHaveTwoConsumerNames(t *testing.T) {
	for run := 0; run < 2; run++ {
		q := newQueue(t)
		worker := dq.Worker{Queue: q, Handler: func(context.Context, *dq.Message) error { return nil }}
		stops := []func() error{running(t, &worker), running(t, &worker)}
		waitFor(t, "two fetches that wait", func() bool { return infoOf(t, q, "blocked-clients") == 2 })
		consumers, err := q.Consumers(ctx)
		must(t, err)
		equal(t, "consumers", len(consumers), 2)
		for _, one := range consumers {
			// The names of workers that have ended are taken again.
			suffix := strings.TrimPrefix(one.Name, dq.ConsumerName())
			equal(t, one.Name, suffix == "" || suffix == ":2", true)
		}
		for _, stop := range stops {
			must(t, stop())
		}
	}
}
