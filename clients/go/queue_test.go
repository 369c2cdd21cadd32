package dq_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"dq"
	"dq/redigo"
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

	acked, err := q.Ack(ctx, []int64{m.Receipt, 77})
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

func TestAWrongURLDoesNotShowItsPassword(t *testing.T) {
	for _, wrong := range []string{"redis://ann:s3cr%et@host", "redis://ann:s3cr/et@host", "ann:s3cret@host",
		"redis://ann:12/s3cret@host", "redis://s3cret/x@127.0.0.1:1", "redis://s3cret#x@127.0.0.1:1", "redis://s3cret?x@127.0.0.1:1"} {
		cli := redigo.Dial(wrong)
		_, err := cli.Do("PING")
		equal(t, fmt.Sprint(err), err != nil && !strings.Contains(err.Error(), "s3cr"), true)
		must(t, cli.Close())
	}
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
	must(t, q.Alter(ctx, dq.Sends(false), dq.MaxLen(0)))
	_, err = q.Send(ctx, []byte("y"))
	equal(t, "closed", errors.Is(err, dq.ErrQueueClosed), true)
	must(t, q.Alter(ctx, dq.Sends(true)))
	send(t, q, "y")
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
	moved, err := q.Tick(ctx, dq.Advance(time.Minute))
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

func TestAMessageIsParkedUntilASignal(t *testing.T) {
	q := newQueue(t, dq.ManualClock(time.UnixMilli(0)))
	send(t, q, "x", dq.ID("x"), dq.Parked(time.Hour))
	why, err := q.Explain(ctx, "x")
	must(t, err)
	equal(t, "parked", *why, dq.Explanation{Code: "parked", Why: why.Why, Until: time.UnixMilli(0).Add(time.Hour)})
	got, err := q.Signal(ctx, "x", "first")
	must(t, err)
	equal(t, "signalled", got, true)
	got, err = q.Signal(ctx, "nobody", "")
	must(t, err)
	equal(t, "signalled", got, false)
	m := fetch(t, q)[0]
	equal(t, "signal", *m.Signal+*get(t, q, "x").Signal, "firstfirst")
	_, err = q.Nack(ctx, dq.Receipts(m), dq.Silent(), dq.Parked(0), dq.Note("asked"))
	must(t, err)
	send(t, q, "y", dq.ID("y"))
	ids, err := q.AckSend(ctx, fetch(t, q)[0].Receipt,
		dq.Signal{ID: "x", Data: "second"}, dq.Next{Payload: []byte("z"), Options: []dq.SendOption{dq.ID("z")}},
		dq.Signal{To: q.Key(), ID: "nobody"})
	must(t, err)
	equal(t, "ids", reflect.DeepEqual(ids, []string{"1", "z", "0"}), true)
	m = fetch(t, q)[0]
	equal(t, "signal", *m.Signal+m.Note, "secondasked")
	equal(t, "no signal", fetch(t, q)[0].Signal == nil, true)
}

func TestLimitsHaveNamesAndMessagesCosts(t *testing.T) {
	q := newQueue(t, dq.ManualClock(time.UnixMilli(0)), dq.Fair("COST"))
	must(t, q.Limit(ctx, "tokens", dq.Rate(1000, time.Minute), dq.Rate(5000, time.Hour), dq.Weighted()))
	must(t, q.Limit(ctx, "user-*", dq.Concurrency(2), dq.Weighted()))
	for _, id := range []string{"x", "y"} {
		send(t, q, id, dq.ID(id), dq.Limits("user-7", "tokens"), dq.Cost(2))
	}
	record := get(t, q, "x")
	equal(t, "limits", reflect.DeepEqual(record.Limits, []string{"user-7", "tokens"}), true)
	equal(t, "cost", *record.Cost, 2)
	batch, err := q.Fetch(ctx, dq.Count(2))
	must(t, err)
	equal(t, "delivered", len(batch), 1)
	why, err := q.Explain(ctx, "y")
	must(t, err)
	equal(t, "why", why.Code+" "+why.By, "limit user-7")
	limits := func() map[string]dq.LimitRecord {
		all := map[string]dq.LimitRecord{}
		must(t, q.Limits(ctx, func(one dq.LimitRecord) error {
			all[one.Limit] = one
			return nil
		}))
		return all
	}
	used := limits()["user-7"]
	equal(t, "used", fmt.Sprintln(used.Rule, used.Concurrency, used.Weighted, used.RunningCost), "user-* 2 true 2\n")
	acked, err := q.Ack(ctx, dq.Receipts(batch...), dq.Cost(7))
	must(t, err)
	equal(t, "acked", acked, 1)
	rates := []dq.Window{{N: 1000, Per: time.Minute, Used: 7}, {N: 5000, Per: time.Hour, Used: 7}}
	equal(t, "rates", reflect.DeepEqual(limits()["tokens"].Rates, rates), true)
	must(t, q.Limit(ctx, "user-*", dq.Concurrency(1), dq.Weighted()))
	batch, err = q.Fetch(ctx)
	must(t, err)
	equal(t, "delivered", len(batch), 0)
	equal(t, "never", limits()["user-7"].Never && limits()["user-7"].NextFree.IsZero(), true)
	must(t, q.Limit(ctx, "tokens"))
	equal(t, "rule", limits()["tokens"].Rule, "")
}

func TestAMessageWaitsForItsChildren(t *testing.T) {
	q, parts := newQueue(t), dq.NewQueue(connect(t), "parts:"+t.Name())
	must(t, parts.Ensure(ctx, dq.Retain(time.Minute), dq.Retries(0)))
	send(t, q, "publish", dq.ID("p"), dq.Children(2))
	send(t, parts, "1", dq.ID("a"), dq.Parent(q.Key(), "p"))
	send(t, parts, "2", dq.ID("b"), dq.Parent(q.Key(), "p"), dq.OnDead("GO"))
	equal(t, "children", get(t, q, "p").Children.Total, 2)
	equal(t, "parent", *get(t, parts, "b").Parent, dq.ParentRecord{Key: q.Key(), ID: "p", OnDead: "GO"})
	batch := fetch(t, parts, dq.Count(2))
	_, err := parts.Ack(ctx, dq.Receipts(batch[0]), dq.Result("done"))
	must(t, err)
	_, err = parts.Nack(ctx, dq.Receipts(batch[1]), dq.Error("broken"))
	must(t, err)
	equal(t, "counts", *fetch(t, q)[0].Children, dq.ChildCounts{Total: 2, Finished: 1, Dead: 1})
	var seen []string
	must(t, q.Children(ctx, "p", func(one dq.ChildRecord) error {
		seen = append(seen, one.ID+" "+string(one.State)+" "+one.Error)
		return nil
	}))
	equal(t, "children", strings.Join(seen, ", "), "a finished , b dead broken")
	_, err = connect(t).Do("DEL", parts.Key())
	must(t, err)
}

func TestARunningMessageRunsOnceMore(t *testing.T) {
	q := newQueue(t)
	send(t, q, "1", dq.ID("x"))
	m := fetch(t, q)[0]
	id, err := q.Send(ctx, []byte("2"), dq.ID("x"), dq.Replace())
	must(t, err)
	equal(t, "replaced", id, "")
	send(t, q, "3", dq.ID("x"), dq.Replace(), dq.Rerun())
	equal(t, "rerun", get(t, q, "x").Rerun, true)
	_, err = q.Ack(ctx, dq.Receipts(m))
	must(t, err)
	equal(t, "payload", string(fetch(t, q)[0].Payload), "3")
}

func TestAFetchTakesFromTheFirstQueueThatCanGive(t *testing.T) {
	q, low := newQueue(t), dq.NewQueue(connect(t), "low:"+t.Name())
	none, err := q.FetchFirst(ctx, []*dq.Queue{low}, dq.Block(time.Millisecond))
	must(t, err)
	equal(t, "messages", len(none), 0)
	send(t, low, "x", dq.ID("a"))
	first, err := q.FetchFirst(ctx, []*dq.Queue{low}, dq.Consumer("w"))
	must(t, err)
	equal(t, "queue", first[0].Queue, low)
	send(t, q, "y")
	first, err = q.FetchFirst(ctx, []*dq.Queue{low}, dq.Block(time.Second), dq.Count(5))
	must(t, err)
	equal(t, "payload", string(first[0].Payload), "y")
	_, err = low.Purge(ctx)
	must(t, err)
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
