package dq_test

import (
	"testing"
	"time"

	"dq"
)

func TestEnsureMakesOrChanges(t *testing.T) {
	q := newQueue(t)
	must(t, q.Ensure(ctx))
	must(t, q.Ensure(ctx, dq.Lease(5*time.Second), dq.Rate(10, time.Second), dq.Backoff(dq.Exp, time.Second),
		dq.Breaker(3, time.Minute, time.Second, time.Hour), dq.MaxBytes(1000), dq.OnDead("BLOCK"),
		dq.DeadTo("other", "expired", "retries"), dq.Events("stream"), dq.EventsLen(7)))
	info, err := q.Info(ctx)
	must(t, err)
	equal(t, "lease", info.Int("lease"), int64(5000))
	equal(t, "rate", info.Text("rate"), "10 PER 1000")
	equal(t, "backoff", info.Text("backoff"), "EXP 1000")
	equal(t, "breaker", info.Text("breaker"), "3 PER 60000 OPEN 1000 MAX 3600000")
	equal(t, "paused", info.Text("paused"), "0")
	equal(t, "deadto", info.Text("deadto"), "other retries expired")
	equal(t, "events", info.Text("events"), "stream")
	equal(t, "eventslen", info.Int("eventslen"), int64(7))
	must(t, q.Alter(ctx, dq.NoRate(), dq.NoBreaker(), dq.DeadTo(""), dq.Events("")))
	info, err = q.Info(ctx)
	must(t, err)
	equal(t, "rate", info.Text("rate"), "")
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
	_, err = q.Tick(ctx, dq.Advance(30*time.Second))
	must(t, err)
	equal(t, "fired", fetch(t, q)[0].ID, "often@30000")
	there, err := q.PauseSchedule(ctx, "often")
	must(t, err)
	equal(t, "paused", there, true)
	schedules, err = q.Schedules(ctx)
	must(t, err)
	equal(t, "paused", schedules[1].Paused, true)
	there, err = q.ResumeSchedule(ctx, "nobody")
	must(t, err)
	equal(t, "resumed", there, false)
	there, err = q.Unschedule(ctx, "often")
	must(t, err)
	equal(t, "removed", there, true)

	send(t, q, "x")
	n, err := q.Purge(ctx, dq.InState(dq.Ready))
	must(t, err)
	equal(t, "purged", n, 1)
}

func TestFailedAttemptsAreKept(t *testing.T) {
	q := newQueue(t, dq.ManualClock(time.UnixMilli(0)), dq.Errors(2), dq.Backoff(dq.Fixed, 0))
	send(t, q, "x", dq.ID("a"))
	_, err := q.Nack(ctx, []int64{fetch(t, q)[0].Receipt}, dq.Error("HTTP 500"))
	must(t, err)
	found, err := q.Get(ctx, "a")
	must(t, err)
	equal(t, "attempts", len(found.Errors), 1)
	equal(t, "attempt", found.Errors[0].Attempt, 1)
	equal(t, "text", found.Errors[0].Text, "HTTP 500")
}

func TestABatchHoldsAMessage(t *testing.T) {
	q := newQueue(t, dq.ManualClock(time.UnixMilli(0)))
	send(t, q, "1", dq.Batch("b"))
	send(t, q, "last", dq.ID("last"), dq.After("b"), dq.OnFail("GO"))
	equal(t, "state", get(t, q, "last").State, dq.Held)
	equal(t, "pending", get(t, q, "last").After.Pending, 1)
	must(t, q.Batches(ctx, func(b dq.BatchRecord) error {
		equal(t, "batch", b, dq.BatchRecord{BatchCounts: dq.BatchCounts{Batch: "b", Pending: 1}, Held: 1})
		return nil
	}))
	m := fetch(t, q, dq.Acking(fetch(t, q)[0].Receipt))[0]
	equal(t, "released", m.ID, "last")
	equal(t, "finished", *m.After, dq.BatchCounts{Batch: "b", Finished: 1})
}
