package delayqueue_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dq"
	"dq/delayqueue"
)

func TestEachMessageIsConsumedOnceAndAFailedOneIsRetried(t *testing.T) {
	var mutex sync.Mutex
	deliveries := map[string]int{}
	q := newQueue(t, func(payload string) bool {
		mutex.Lock()
		defer mutex.Unlock()
		deliveries[payload]++
		return payload[0] != '-'
	}).WithConcurrent(4)
	for i := 0; i < 50; i++ {
		must(t, q.SendDelayMsg(fmt.Sprint("+", i), 0))
		must(t, q.SendScheduleMsg(fmt.Sprint("-", i), time.Now().Add(20*time.Millisecond), delayqueue.WithRetryCount(2)))
	}
	done := q.StartConsume()
	waitFor(t, "an empty queue", func() bool { return counts(t, q) == "0 0 0" })
	q.StopConsume()
	<-done
	equal(t, "payloads", len(deliveries), 100)
	for payload, n := range deliveries {
		equal(t, payload, n, map[bool]int{true: 1, false: 3}[payload[0] == '+'])
	}
	// A message that has failed for the last time is kept.
	dead, err := dq.NewQueue(connect(t), "dp:"+t.Name()).Len(ctx, dq.Dead)
	must(t, err)
	equal(t, "dead", dead, 50)
}

func TestNoMessageComesEarlyOrWaitsForAnInterval(t *testing.T) {
	arrived := make(chan time.Time, 1)
	q := newQueue(t, func(string) bool {
		arrived <- time.Now()
		return true
	}).WithFetchInterval(2 * time.Second)
	done := q.StartConsume()
	for i := 0; i < 5; i++ {
		due := time.Now().Add(150 * time.Millisecond)
		must(t, q.SendScheduleMsg("x", due))
		if early := due.Sub(<-arrived); early > 0 {
			t.Fatalf("it came %v early", early)
		}
	}
	q.StopConsume()
	<-done
}

func TestACallbackStopsTheConsumer(t *testing.T) {
	var q *delayqueue.DelayQueue
	received := 0
	q = newQueue(t, func(string) bool {
		if received++; received == 3 {
			q.StopConsume()
		}
		return true
	})
	for i := 0; i < 5; i++ {
		must(t, q.SendDelayMsg("x", 0))
	}
	<-q.StartConsume()
	equal(t, "received", received, 3)
	equal(t, "left", counts(t, q), "0 2 0")
	// The queue can be started again.
	done := q.StartConsume()
	waitFor(t, "an empty queue", func() bool { return counts(t, q) == "0 0 0" })
	q.StopConsume()
	q.StopConsume()
	<-done
	equal(t, "received", received, 5)
}

func TestConcurrentAndFetchLimitBoundTheCallbacks(t *testing.T) {
	for _, limit := range []uint{0, 2} {
		var now, most int32
		q := newQueue(t, func(string) bool {
			if n := atomic.AddInt32(&now, 1); n > atomic.LoadInt32(&most) {
				atomic.StoreInt32(&most, n)
			}
			time.Sleep(2 * time.Millisecond)
			atomic.AddInt32(&now, -1)
			return true
		}).WithConcurrent(4).WithFetchLimit(limit)
		for i := 0; i < 40; i++ {
			must(t, q.SendDelayMsg("x", 0))
		}
		done := q.StartConsume()
		waitFor(t, "an empty queue", func() bool { return counts(t, q) == "0 0 0" })
		q.StopConsume()
		<-done
		equal(t, "at once", most, map[uint]int32{0: 4, 2: 2}[limit])
	}
}

func TestACallbackThatTakesTooLongLosesItsMessage(t *testing.T) {
	var attempts int32
	events := &recorder{}
	q := newQueue(t, func(string) bool {
		if atomic.AddInt32(&attempts, 1) == 1 {
			waitFor(t, "the second attempt", func() bool { return events.count(delayqueue.AckEvent) == 1 })
			// The client has counted the time from when the message came, a moment later than the server.
			time.Sleep(500 * time.Millisecond)
		}
		return true
	}).WithMaxConsumeDuration(time.Second).WithConcurrent(2)
	q.ListenEvent(events)
	must(t, q.SendDelayMsg("x", 0))
	done := q.StartConsume()
	waitFor(t, "the second attempt", func() bool { return events.count(delayqueue.AckEvent) == 1 })
	q.StopConsume()
	<-done
	equal(t, "events", events.String(), "new 1, ready 1, delivered 1, ack 1, nack 0, retry 1, failed 0")
	equal(t, "attempts", atomic.LoadInt32(&attempts), 2)
}

func TestTheWaitAfterAFailure(t *testing.T) {
	attempts := make(chan time.Time, 2)
	q := newQueue(t, func(string) bool {
		attempts <- time.Now()
		return false
	}).WithNackRedeliveryDelay(100 * time.Millisecond).WithDefaultRetryCount(1)
	must(t, q.SendDelayMsg("x", 0))
	done := q.StartConsume()
	first := <-attempts
	if waited := (<-attempts).Sub(first); waited < 99*time.Millisecond { // the server counts whole milliseconds
		t.Fatalf("it waited for %v", waited)
	}
	q.StopConsume()
	<-done
}

func TestAPanicIsAFailure(t *testing.T) {
	attempts := make(chan time.Time, 2)
	q := newQueue(t, func(string) bool {
		attempts <- time.Now()
		panic("at the disco")
	}).WithNackRedeliveryDelay(50 * time.Millisecond).WithDefaultRetryCount(1).WithLogger(writer(func(string) {}))
	must(t, q.SendDelayMsg("x", 0))
	done := q.StartConsume()
	first := <-attempts
	if waited := (<-attempts).Sub(first); waited < 49*time.Millisecond { // the server counts whole milliseconds
		t.Fatalf("it waited for %v", waited)
	}
	q.StopConsume()
	<-done
}

func TestInterceptingTellsTheState(t *testing.T) {
	began, end := make(chan bool, 1), make(chan bool)
	q := newQueue(t, func(string) bool {
		began <- true
		<-end
		return false
	}).WithNackRedeliveryDelay(time.Hour)
	intercept := func(info *delayqueue.MessageInfo) delayqueue.InterceptResult {
		t.Helper()
		result, err := q.TryIntercept(info)
		must(t, err)
		return *result
	}
	sent := func(delay time.Duration) *delayqueue.MessageInfo {
		t.Helper()
		info, err := q.SendDelayMsgV2("x", delay)
		must(t, err)
		return info
	}
	later := sent(time.Hour)
	equal(t, "pending", intercept(later), delayqueue.InterceptResult{Intercepted: true, State: delayqueue.StatePending})
	equal(t, "again", intercept(later), delayqueue.InterceptResult{State: delayqueue.StateUnknown})
	equal(t, "ready", intercept(sent(0)), delayqueue.InterceptResult{Intercepted: true, State: delayqueue.StateReady})
	consuming := sent(-time.Hour)
	done := q.StartConsume()
	<-began
	equal(t, "consuming", intercept(consuming), delayqueue.InterceptResult{State: delayqueue.StateConsuming})
	end <- true
	failed := sent(0)
	<-began
	end <- true
	waitFor(t, "the wait after the failure", func() bool { return counts(t, q) == "1 0 0" })
	equal(t, "failed", intercept(failed), delayqueue.InterceptResult{State: delayqueue.StateReadyRetry})
	equal(t, "nothing is retried", counts(t, q), "0 0 0")
	q.StopConsume()
	<-done
}

func TestATTLMakesAMessageDead(t *testing.T) {
	q := newQueue(t)
	info, err := q.SendDelayMsgV2("x", 0, delayqueue.WithMsgTTL(time.Millisecond))
	must(t, err)
	forever, err := q.SendDelayMsgV2("x", 0)
	must(t, err)
	inner := dq.NewQueue(connect(t), "dp:"+t.Name())
	waitFor(t, "the end of the TTL", func() bool {
		record, err := inner.Get(ctx, info.ID())
		must(t, err)
		return record.Reason == "expired"
	})
	record, err := inner.Get(ctx, forever.ID())
	must(t, err)
	equal(t, "the TTL of another one", record.State, dq.Ready)
}

func TestAMessageNeedsNothingThatItsQueueHasLost(t *testing.T) {
	q := newQueue(t).WithDefaultRetryCount(7)
	cli := connect(t)
	inner := dq.NewQueue(cli, "dp:"+t.Name())
	for range make([]int, 2) {
		for _, retries := range []int{7, 2, -1} {
			var opts []interface{}
			if retries != 7 {
				opts = append(opts, delayqueue.WithRetryCount(retries))
			}
			info, err := q.SendDelayMsgV2("x", 0, opts...)
			must(t, err)
			record, err := inner.Get(ctx, info.ID())
			must(t, err)
			equal(t, "retries", record.RetriesLeft, retries)
		}
		_, err := cli.Do("DEL", "dp:"+t.Name())
		must(t, err)
	}
}

func TestTheKeyOfAQueue(t *testing.T) {
	cli := connect(t)
	for key, opts := range map[string][]interface{}{
		"dp:k":   nil,
		"{dp:k}": {delayqueue.UseHashTagKey()},
		"mine:k": {delayqueue.UseCustomPrefix("mine")},
	} {
		_, err := cli.Do("DEL", key)
		must(t, err)
		must(t, delayqueue.NewPublisher0("k", cli, opts...).SendDelayMsg("x", 0))
		n, err := cli.Do("DQ.LEN", key)
		must(t, err)
		equal(t, key, n.(int64), 1)
	}
}

func TestAConsumerGoesOnAfterAnError(t *testing.T) {
	received := make(chan string, 1)
	lines := &bytes.Buffer{}
	var mutex sync.Mutex
	q := newQueue(t, func(payload string) bool {
		received <- payload
		return true
	}).WithLogger(writer(func(line string) {
		mutex.Lock()
		defer mutex.Unlock()
		lines.WriteString(line)
	}))
	cli := connect(t)
	_, err := cli.Do("SET", "dp:"+t.Name(), "a text")
	must(t, err)
	done := q.StartConsume()
	waitFor(t, "the error", func() bool {
		mutex.Lock()
		defer mutex.Unlock()
		return strings.Contains(lines.String(), "WRONGTYPE")
	})
	_, err = cli.Do("DEL", "dp:"+t.Name())
	must(t, err)
	must(t, q.SendDelayMsg("x", 0))
	equal(t, "payload", <-received, "x")
	q.StopConsume()
	<-done
	_, err = q.SendDelayMsgV2("x", 0)
	must(t, err)
	must(t, delayqueueErr(cli))
}

// delayqueueErr shows that the errors are those of package dq.
func delayqueueErr(cli delayqueue.RedisCli) error {
	if _, err := cli.Do("SET", "dp:text", "x"); err != nil {
		return err
	}
	err := delayqueue.NewPublisher0("text", cli).SendDelayMsg("x", 0)
	if !errors.Is(err, dq.ErrWrongType) {
		return fmt.Errorf("another error: %v", err)
	}
	return nil
}

type writer func(line string)

func (w writer) Printf(format string, v ...interface{}) { w(fmt.Sprintf(format, v...)) }

func TestWrongUsePanics(t *testing.T) {
	cli := connect(t)
	for what, use := range map[string]func(){
		"no name":     func() { delayqueue.NewQueue0("", cli) },
		"no client":   func() { delayqueue.NewQueue0("q", nil) },
		"no callback": func() { delayqueue.NewQueue0("q", cli).StartConsume() },
		"concurrency": func() { delayqueue.NewQueue0("q", cli).WithConcurrent(0) },
		"while running": func() {
			q := newQueue(t, func(string) bool { return true })
			q.StartConsume()
			defer q.StopConsume()
			q.WithConcurrent(2)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			use()
		}()
	}
}

func TestACallbackMayEndAsItLikes(t *testing.T) {
	var attempts sync.Map
	q := newQueue(t, func(payload string) bool {
		n, _ := attempts.LoadOrStore(payload, new(int32))
		if atomic.AddInt32(n.(*int32), 1) > 1 {
			return true
		}
		switch payload {
		case "nil":
			panic(nil)
		case "text":
			panic("why")
		case "goroutine":
			runtime.Goexit()
		}
		return false
	})
	for _, payload := range []string{"nil", "text", "goroutine", "false"} {
		must(t, q.SendDelayMsg(payload, 0))
	}
	done := q.StartConsume()
	waitFor(t, "an empty queue", func() bool { return counts(t, q) == "0 0 0" })
	q.StopConsume()
	<-done
	for _, payload := range []string{"nil", "text", "goroutine", "false"} {
		n, _ := attempts.Load(payload)
		equal(t, payload, *n.(*int32), 2)
	}
}
