package dq_test

import (
	"context"
	"errors"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"dq"
)

func TestAMessageArrivesAsItWasSent(t *testing.T) {
	q := newQueue(t, dq.ManualClock(time.UnixMilli(1000)))
	id := send(t, q, "pay\x00load\xff", dq.ID("a"), dq.Type("welcome"), dq.Group("ann"), dq.Score(1.5), dq.Priority(-3),
		dq.Retries(7), dq.TTL(time.Hour), dq.Batch("b"), dq.Headers(map[string]string{"x": "1", "y": "zwei"}))
	equal(t, "id", id, "a")
	m := fetch(t, q, dq.Lease(2*time.Second), dq.Consumer("me"))[0]
	equal(t, "id", m.ID, "a")
	equal(t, "payload", string(m.Payload), "pay\x00load\xff")
	equal(t, "type", m.Type, "welcome")
	equal(t, "group", m.Group, "ann")
	equal(t, "score", *m.Score, 1.5)
	equal(t, "priority", m.Priority, -3)
	equal(t, "retries", m.RetriesLeft, 7)
	equal(t, "batch", m.Batch, "b")
	equal(t, "attempt", m.Attempt, 1)
	equal(t, "header", m.Headers["y"], "zwei")
	equal(t, "sent", m.SentAt, time.UnixMilli(1000))
	equal(t, "lease", m.LeaseUntil, time.UnixMilli(3000))
	equal(t, "queue", m.Queue, q)

	r := get(t, q, "a")
	equal(t, "state", r.State, dq.Running)
	equal(t, "consumer", r.Consumer, "me")
	equal(t, "receipt", r.Receipt, m.Receipt)
	equal(t, "finished", r.FinishedAt.IsZero(), true)
	equal(t, "result", r.Result == nil, true)

	acked, err := q.Ack(ctx, m.Receipt, 77)
	must(t, err)
	equal(t, "acked", acked, 1)
	nobody, err := q.Get(ctx, "a")
	must(t, err)
	equal(t, "record", nobody == nil, true)
}

func TestOneRoundTripAcksAndFetches(t *testing.T) {
	q := newQueue(t, dq.Retain(time.Hour))
	send(t, q, "1", dq.ID("1"))
	send(t, q, "2", dq.ID("2"))
	m := fetch(t, q)[0]
	m = fetch(t, q, dq.Acking(m.Receipt), dq.Results("done"), dq.Block(time.Second))[0]
	equal(t, "id", m.ID, "2")
	equal(t, "result", *get(t, q, "1").Result, "done")
}

func TestTimesAreRoundedUp(t *testing.T) {
	q := newQueue(t, dq.ManualClock(time.UnixMilli(0)))
	send(t, q, "x", dq.ID("a"), dq.At(time.UnixMilli(7).Add(time.Microsecond)), dq.Lease(time.Nanosecond))
	equal(t, "at", get(t, q, "a").DueAt, time.UnixMilli(8))
	send(t, q, "x", dq.ID("b"), dq.Delay(3*time.Millisecond))
	equal(t, "delay", get(t, q, "b").DueAt, time.UnixMilli(3))
}

func TestAnyOptionCanBeGivenInItsWords(t *testing.T) {
	q := newQueue(t, dq.Raw("LEASE", "7000"))
	equal(t, "lease", infoOf(t, q, "lease"), int64(7000))
	equal(t, "id", send(t, q, "x", dq.Raw("ID", "a"), dq.Raw("PRIORITY", "5")), "a")
	_, err := q.Send(ctx, []byte("x"), dq.Raw("SHINY", "1"))
	equal(t, "refused", err != nil && strings.Contains(err.Error(), "SHINY"), true)
}

func TestATakenIDIsEmpty(t *testing.T) {
	q := newQueue(t)
	equal(t, "first", send(t, q, "x", dq.ID("a")), "a")
	equal(t, "second", send(t, q, "x", dq.ID("a")), "")
	equal(t, "replaced", send(t, q, "y", dq.ID("a"), dq.Replace(), dq.Delay(time.Hour)), "a")
	equal(t, "state", get(t, q, "a").State, dq.Delayed)
	equal(t, "no group", send(t, q, "x", dq.Group("g"), dq.IfGroup()), "")
}

var uuid7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestASendWhoseReplyIsLostIsRepeatedOnce(t *testing.T) {
	lost := 0
	q := queueOver(t, losing{connect(t), func(args []interface{}) bool {
		if args[0] == "DQ.SEND" {
			lost++
		}
		return args[0] == "DQ.SEND" && lost == 1
	}})
	id := send(t, q, "x")
	equal(t, "tries", lost, 2)
	if !uuid7.MatchString(id) {
		t.Fatalf("%s is no UUIDv7", id)
	}
	ms, err := strconv.ParseInt(id[:8]+id[9:13], 16, 64)
	must(t, err)
	age := time.Since(time.UnixMilli(ms))
	equal(t, "its time is now", age >= 0 && age < time.Minute, true)
	equal(t, "payload", string(get(t, q, id).Payload), "x")
	equal(t, "messages", infoOf(t, q, "sent"), int64(1))
}

func TestASendGivesUp(t *testing.T) {
	q := queueOver(t, losing{connect(t), func(args []interface{}) bool { return args[0] == "DQ.SEND" }})
	q.Patience = 50 * time.Millisecond
	_, err := q.Send(ctx, []byte("x"))
	var lost *dq.ConnError
	equal(t, "type", errors.As(err, &lost), true)
	equal(t, "transient", dq.IsTransient(err), true)
}

func TestErrorsAreTyped(t *testing.T) {
	q := newQueue(t, dq.MaxLen(1))
	send(t, q, "x")
	_, err := q.Send(ctx, []byte("y"))
	equal(t, "full", errors.Is(err, dq.ErrQueueFull), true)
	equal(t, "exists", errors.Is(q.Create(ctx), dq.ErrQueueExists), true)
	equal(t, "not there", errors.Is(q.Create(ctx), dq.ErrNoSuchQueue), false)
	cli := connect(t)
	_, err = dq.NewQueue(cli, t.Name()+"nobody").Info(ctx)
	equal(t, "not there", errors.Is(err, dq.ErrNoSuchQueue), true)
	_, err = cli.Do("SET", t.Name()+"text", "x")
	must(t, err)
	_, err = dq.NewQueue(cli, t.Name()+"text").Len(ctx)
	equal(t, "type", errors.Is(err, dq.ErrWrongType), true)
	equal(t, "transient", dq.IsTransient(err), false)
	_, err = q.Do(ctx, "SEND", "x", "NONSENSE")
	var reply *dq.ServerError
	equal(t, "option", errors.As(err, &reply) && reply.Code == "ERR" && strings.Contains(reply.Text, "NONSENSE"), true)
	_, err = dq.NewQueue(as(t, "poor", "-@all"), t.Name()).Len(ctx)
	equal(t, "right", errors.Is(err, dq.ErrNoPermission), true)
	ended, end := context.WithCancel(ctx)
	end()
	_, err = q.Send(ended, []byte("x"))
	equal(t, "context", errors.Is(err, context.Canceled), true)
}

func TestEnsureMakesOrChanges(t *testing.T) {
	q := newQueue(t)
	must(t, q.Ensure(ctx))
	must(t, q.Ensure(ctx, dq.Lease(5*time.Second), dq.Rate(10, time.Second), dq.Backoff(dq.Exp, time.Second),
		dq.Breaker(3, time.Minute, time.Second, time.Hour), dq.MaxBytes(1000), dq.OnDead("BLOCK")))
	info, err := q.Info(ctx)
	must(t, err)
	equal(t, "lease", info.Int("lease"), int64(5000))
	equal(t, "rate", info.Text("rate"), "10 PER 1000")
	equal(t, "backoff", info.Text("backoff"), "EXP 1000")
	equal(t, "breaker", info.Text("breaker"), "3 PER 60000 OPEN 1000 MAX 3600000")
	equal(t, "paused", info.Text("paused"), "0")
	must(t, q.Alter(ctx, dq.NoRate(), dq.NoBreaker()))
	info, err = q.Info(ctx)
	must(t, err)
	equal(t, "rate", info.Text("rate"), "")
}

func TestManyMessagesOfAGroupAreAllOrNone(t *testing.T) {
	q := newQueue(t, dq.MaxLen(3))
	ids, err := q.SendMany(ctx, [][]byte{[]byte("1"), []byte("2"), []byte("3")}, dq.Group("g"))
	must(t, err)
	equal(t, "ids", len(ids), 3)
	_, err = q.SendMany(ctx, [][]byte{[]byte("4")})
	equal(t, "full", errors.Is(err, dq.ErrQueueFull), true)
	batch := fetch(t, q, dq.Group("g"), dq.Count(3))
	equal(t, "batch", len(batch), 3)
	changed, err := q.Nack(ctx, dq.Receipts(batch...), dq.Silent())
	must(t, err)
	equal(t, "given back", changed, 3)
	none, err := q.SendMany(ctx, nil)
	must(t, err)
	equal(t, "none", len(none), 0)
}

func TestGroupPushReadsThePayload(t *testing.T) {
	q := newQueue(t)
	object := []byte(`{"user":7,"order":"o1","req":"r9","at":5}`)
	paths := dq.Paths{Group: []string{"user", "order"}, ID: "req", Score: "at"}
	group, id, err := q.GroupPush(ctx, object, paths)
	must(t, err)
	equal(t, "group", group, "7_o1")
	equal(t, "id", id, "r9")
	group, id, err = q.GroupPush(ctx, object, paths)
	must(t, err)
	equal(t, "taken", group+id, "")
	var value struct{ User int }
	must(t, fetch(t, q)[0].JSON(&value))
	equal(t, "user", value.User, 7)
}

func TestAFailedMessageWaitsForItsBackoff(t *testing.T) {
	q := newQueue(t, dq.ManualClock(time.UnixMilli(0)), dq.Backoff(dq.Fixed, time.Minute), dq.Retries(1))
	send(t, q, "x", dq.ID("a"))
	failed, err := q.Nack(ctx, dq.Receipts(fetch(t, q)...), dq.Error("busy"), dq.Note("half"))
	must(t, err)
	equal(t, "failed", failed, 1)
	equal(t, "state", get(t, q, "a").State, dq.Retrying)
	moved, err := q.Advance(ctx, time.Minute)
	must(t, err)
	equal(t, "due", moved.Int("due"), int64(1))
	m := fetch(t, q)[0]
	equal(t, "attempt", m.Attempt, 2)
	equal(t, "note", m.Note, "half")
	kept, err := q.Touch(ctx, time.Hour, []int64{m.Receipt}, dq.Note("more"))
	must(t, err)
	equal(t, "kept", kept, 1)
	_, err = q.Nack(ctx, []int64{m.Receipt}, dq.Fatal(), dq.Error("never"))
	must(t, err)
	r := get(t, q, "a")
	equal(t, "reason", r.Reason, "rejected")
	equal(t, "error", r.Error, "never")
	equal(t, "note", r.Note, "more")
	redriven, err := q.Redrive(ctx)
	must(t, err)
	equal(t, "redriven", redriven, 1)
}

func TestAckSendIsOneStep(t *testing.T) {
	q := newQueue(t, dq.Retain(time.Hour))
	send(t, q, "order", dq.ID("o"))
	m := fetch(t, q)[0]
	to := q.Key() + "next"
	ids, err := q.AckSend(ctx, m.Receipt,
		dq.Next{To: to, Payload: []byte("parcel"), Options: []dq.SendOption{dq.ID("p")}},
		dq.Next{Payload: []byte("mail"), Options: []dq.SendOption{dq.ID("m"), dq.Delay(time.Minute)}})
	must(t, err)
	equal(t, "ids", reflect.DeepEqual(ids, []string{"p", "m"}), true)
	equal(t, "state", get(t, q, "m").State, dq.Delayed)
	_, err = q.AckSend(ctx, m.Receipt, dq.Next{Payload: []byte("x")})
	equal(t, "stale", errors.Is(err, dq.ErrLeaseLost), true)
	_, err = dq.NewQueue(connect(t), to).Purge(ctx)
	must(t, err)
}

func TestAContextEndsAWait(t *testing.T) {
	q := newQueue(t)
	for i := 0; i < 3; i++ {
		waiting, end := context.WithTimeout(ctx, 30*time.Millisecond)
		_, err := q.Fetch(waiting, dq.Block(0))
		equal(t, "fetch", errors.Is(err, context.DeadlineExceeded), true)
		end()
	}
	send(t, q, "x", dq.ID("a"), dq.Delay(time.Hour))
	waiting, end := context.WithTimeout(ctx, 30*time.Millisecond)
	defer end()
	_, err := q.Wait(waiting, "a", time.Hour)
	equal(t, "wait", errors.Is(err, context.DeadlineExceeded), true)
	equal(t, "waiting", infoOf(t, q, "blocked-clients"), int64(0))
}

func TestWithoutBlockingCliAWaitEndsWithItsBlock(t *testing.T) {
	q := queueOver(t, onlyDo{connect(t)})
	waiting, end := context.WithTimeout(ctx, time.Millisecond)
	defer end()
	_, err := q.Fetch(waiting, dq.Block(50*time.Millisecond))
	equal(t, "fetch", errors.Is(err, context.DeadlineExceeded), true)
}

func TestAnUnblockEndsNoLaterWait(t *testing.T) {
	waiting, end := context.WithCancel(ctx)
	begun, unblocked := make(chan bool), make(chan bool, 1)
	_, err := dq.Unblocking(waiting, func() (interface{}, error) {
		end()
		<-begun
		return nil, nil
	}, func() error {
		close(begun)
		time.Sleep(20 * time.Millisecond)
		unblocked <- true
		return errors.New("enough")
	})
	must(t, err)
	equal(t, "it has ended", len(unblocked), 1)
}

func TestAnEndedWaitLosesNoMessage(t *testing.T) {
	q := newQueue(t)
	const all = 300
	go func() {
		for i := 0; i < all; i++ {
			_, _ = q.Send(ctx, []byte("x"))
			time.Sleep(100 * time.Microsecond)
		}
	}()
	seen := 0
	waitFor(t, "all messages", func() bool {
		waiting, end := context.WithTimeout(ctx, 300*time.Microsecond)
		defer end()
		messages, err := q.Fetch(waiting, dq.Block(time.Minute))
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		for _, m := range messages {
			equal(t, "attempt", m.Attempt, 1)
			_, err := q.Ack(ctx, m.Receipt)
			must(t, err)
			seen++
		}
		return seen == all
	})
	equal(t, "left", infoOf(t, q, "running"), int64(0))
}

func TestATokenGivesTheSameMessagesAgain(t *testing.T) {
	q := newQueue(t)
	send(t, q, "1")
	send(t, q, "2")
	first := fetch(t, q, dq.Consumer("me"), dq.Token("t1"))[0]
	again := fetch(t, q, dq.Consumer("me"), dq.Token("t1"))[0]
	equal(t, "receipt", again.Receipt, first.Receipt)
	equal(t, "no ack", len(fetch(t, q, dq.NoAck())), 1)
}

func TestInspecting(t *testing.T) {
	q := newQueue(t, dq.ManualClock(time.UnixMilli(0)), dq.Retries(0))
	for _, id := range []string{"a1", "a2", "b1"} {
		send(t, q, "for "+id, dq.ID(id), dq.Group(id[:1]), dq.Type("mail"), dq.Headers(map[string]string{"to": id}))
	}
	var seen []string
	visit := func(r dq.Record) error {
		seen = append(seen, r.ID)
		return nil
	}
	ids := func() string {
		defer func() { seen = nil }()
		return strings.Join(seen, " ")
	}
	must(t, q.List(ctx, dq.Ready, visit, dq.Count(1)))
	equal(t, "list", ids(), "a1 a2 b1")
	must(t, q.List(ctx, dq.Ready, visit, dq.Group("a"), dq.Rev(), dq.Type("mail")))
	equal(t, "list", ids(), "a2 a1")
	must(t, q.Find(ctx, dq.Ready, visit, dq.ID("*1"), dq.PayloadLike("for b*"), dq.Header("to", "b1"),
		dq.Since(time.UnixMilli(0)), dq.Until(time.UnixMilli(1))))
	equal(t, "find", ids(), "b1")
	stop := errors.New("stop")
	equal(t, "stop", errors.Is(q.List(ctx, dq.Ready, func(dq.Record) error { return stop }), stop), true)

	peeked, err := q.Peek(ctx, 2)
	must(t, err)
	equal(t, "peek", peeked[0].ID+" "+peeked[1].ID, "a1 b1")
	why, err := q.Explain(ctx, "a2")
	must(t, err)
	equal(t, "why", why.Code+" "+why.By, "behind-head a1")
	why, err = q.Explain(ctx, "nobody")
	must(t, err)
	equal(t, "why", why == nil, true)

	m := fetch(t, q, dq.Consumer("me"))[0]
	consumers, err := q.Consumers(ctx)
	must(t, err)
	equal(t, "consumer", consumers[0].Name, "me")
	equal(t, "running", consumers[0].Running, 1)
	var groups []string
	must(t, q.Groups(ctx, func(g dq.GroupRecord) error {
		groups = append(groups, g.Group+" "+g.State+" "+g.Breaker)
		return nil
	}))
	equal(t, "groups", strings.Join(groups, ", "), "a running closed, b ready closed")

	_, err = q.Nack(ctx, []int64{m.Receipt}, dq.Error("550 no such user"))
	must(t, err)
	ended, err := q.Wait(ctx, "a1", time.Second)
	must(t, err)
	equal(t, "ended", *ended, dq.Ended{State: dq.Dead, Text: "550 no such user"})
	n, err := q.FindRedrive(ctx, dq.ErrorLike("550*"))
	must(t, err)
	equal(t, "redriven", n, 1)
	n, err = q.FindCancel(ctx, dq.Ready, dq.Group("b"))
	must(t, err)
	equal(t, "cancelled", n, 1)
	n, err = q.FindPurge(ctx, dq.Ready, dq.Type("mail"))
	must(t, err)
	equal(t, "purged", n, 2)
}

func TestChanging(t *testing.T) {
	q := newQueue(t, dq.ManualClock(time.UnixMilli(0)))
	send(t, q, "x", dq.ID("a"), dq.Group("g"))
	for _, due := range []dq.DueOption{dq.At(time.UnixMilli(5000)), dq.Delay(7 * time.Second)} {
		moved, err := q.Reschedule(ctx, "a", due)
		must(t, err)
		equal(t, "moved", moved, true)
	}
	equal(t, "due", get(t, q, "a").DueAt, time.UnixMilli(7000))
	updated, err := q.Update(ctx, "a", []byte("y"))
	must(t, err)
	equal(t, "updated", updated, true)
	must(t, q.SetGroup(ctx, "g", dq.Weight(3), dq.Concurrency(2), dq.Rate(5, time.Second)))
	must(t, q.Pause(ctx, dq.Group("g"), dq.For(time.Minute)))
	must(t, q.Groups(ctx, func(g dq.GroupRecord) error {
		equal(t, "group", g.State, "paused")
		equal(t, "weight", g.Weight, 3)
		return nil
	}))
	must(t, q.Resume(ctx, dq.Group("g")))
	states, err := q.Cancel(ctx, "a", "nobody")
	must(t, err)
	equal(t, "cancelled", states[0], dq.Delayed)
	equal(t, "unknown", states[1], dq.State(""))

	first, err := q.Schedule(ctx, "nightly", dq.Times{Cron: "0 3 * * *", Zone: "Europe/Berlin", Overlap: "SKIP"}, []byte("r"),
		dq.Type("report"))
	must(t, err)
	equal(t, "first", first, time.UnixMilli(2*3600*1000))
	_, err = q.Schedule(ctx, "often", dq.Times{Every: time.Minute, Start: time.UnixMilli(30_000)}, []byte("o"))
	must(t, err)
	schedules, err := q.Schedules(ctx)
	must(t, err)
	equal(t, "schedules", len(schedules), 2)
	_, err = q.Advance(ctx, 30*time.Second)
	must(t, err)
	equal(t, "fired", fetch(t, q)[0].ID, "often@30000")
	there, err := q.Unschedule(ctx, "often")
	must(t, err)
	equal(t, "removed", there, true)

	send(t, q, "x")
	n, err := q.Purge(ctx, dq.InState(dq.Ready))
	must(t, err)
	equal(t, "purged", n, 1)
}

func TestABatchHoldsAMessage(t *testing.T) {
	q := newQueue(t, dq.ManualClock(time.UnixMilli(0)))
	send(t, q, "1", dq.Batch("b"))
	send(t, q, "last", dq.ID("last"), dq.After("b"), dq.OnFail("GO"))
	equal(t, "state", get(t, q, "last").State, dq.Held)
	equal(t, "pending", get(t, q, "last").After.Pending, 1)
	must(t, q.Batches(ctx, func(b dq.BatchRecord) error {
		equal(t, "batch", b, dq.BatchRecord{Batch: "b", Pending: 1, Held: 1})
		return nil
	}))
	m := fetch(t, q, dq.Acking(fetch(t, q)[0].Receipt))[0]
	equal(t, "released", m.ID, "last")
	equal(t, "finished", *m.After, dq.BatchCounts{Batch: "b", Finished: 1})
}
