package delayqueue_test

import (
	"bytes"
	"fmt"
	"log"
	"strings"
	"sync"
	"testing"
	"time"

	"dq/delayqueue"
)

// telling is a client that reports when it begins to wait for events.
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
