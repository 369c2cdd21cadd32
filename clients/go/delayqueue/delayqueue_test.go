package delayqueue_test

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dq"
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

// onlyDo is a client as others write it: it has nothing but Do, and each call has a connection of its own.
type onlyDo struct{ delayqueue.RedisCli }

// telling is a client that tells when it begins to wait for events.
type telling struct {
	delayqueue.RedisCli
	listens chan<- bool
}

func (c telling) Do(args ...interface{}) (interface{}, error) {
	if args[0] == "XREAD" {
		select {
		case c.listens <- true:
		default:
		}
	}
	return c.RedisCli.Do(args...)
}

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
	// What has failed for the last time is kept.
	dead, err := dq.NewQueue(connect(t), "dp:"+t.Name()).LenOf(ctx, dq.Dead)
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
	// It can be started again.
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

func TestPublisherAndMonitor(t *testing.T) {
	q := newQueue(t, func(payload string) bool { return payload == "good" }).WithDefaultRetryCount(1)
	cli := connect(t)
	quiet := log.New(&bytes.Buffer{}, "", 0)
	publisher := delayqueue.NewPublisher0(t.Name(), cli).WithLogger(quiet)
	monitor := delayqueue.NewMonitor0(t.Name(), cli).WithLogger(quiet)
	must(t, publisher.SendDelayMsg("later", time.Hour))
	must(t, publisher.SendScheduleMsg("good", time.Now().Add(-time.Minute)))
	must(t, publisher.SendDelayMsg("bad", 0, delayqueue.WithRetryCount(1)))
	equal(t, "counts", counts(t, monitor), "1 2 0")
	q.EnableReport()
	must(t, q.SendDelayMsg("before anybody listens", time.Hour))
	q.DisableReport()

	here, there := &recorder{}, &recorder{}
	end, err := monitor.ListenEvent(there)
	must(t, err)
	stopped := &recorder{}
	listens := make(chan bool, 1)
	stop, err := delayqueue.NewMonitor0(t.Name(), telling{cli, listens}).ListenEvent(stopped)
	must(t, err)
	<-listens
	stop()
	q.EnableReport()
	done := q.StartConsume()
	waitFor(t, "the events", func() bool {
		return there.count(delayqueue.FinalFailedEvent) == 1 && there.count(delayqueue.AckEvent) == 1
	})
	q.DisableReport()
	q.ListenEvent(here)
	must(t, q.SendDelayMsg("good", 0))
	waitFor(t, "the events", func() bool { return here.count(delayqueue.AckEvent) == 1 })
	q.StopConsume()
	<-done
	q.DisableListener()
	must(t, q.SendDelayMsg("good", time.Hour))
	end()
	equal(t, "of all", there.String(), "new 0, ready 2, delivered 2, ack 1, nack 2, retry 1, failed 1")
	equal(t, "of this one", here.String(), "new 1, ready 1, delivered 1, ack 1, nack 0, retry 0, failed 0")
	equal(t, "after the end", stopped.String(), "new 0, ready 0, delivered 0, ack 0, nack 0, retry 0, failed 0")
	life, err := cli.Do("PTTL", "dp:"+t.Name()+":events")
	must(t, err)
	equal(t, "the events go", life.(int64) > 0, true)
}

// recorder counts events.
type recorder struct {
	mutex sync.Mutex
	seen  [8]int
}

func (r *recorder) OnEvent(e *delayqueue.Event) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.seen[e.Code] += e.MsgCount
	if age := time.Now().Unix() - e.Timestamp; age < 0 || age > 60 {
		panic("a wrong time")
	}
}

func (r *recorder) count(code int) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.seen[code]
}

func (r *recorder) String() string {
	var parts []string
	for code, name := range []string{"new", "ready", "delivered", "ack", "nack", "retry", "failed"} {
		parts = append(parts, fmt.Sprint(name, " ", r.count(code+1)))
	}
	return strings.Join(parts, ", ")
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
