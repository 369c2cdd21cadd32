package dq_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"dq"
)

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
	n, err := q.RedriveFound(ctx, dq.ErrorLike("550*"))
	must(t, err)
	equal(t, "redriven", n, 1)
	n, err = q.CancelFound(ctx, dq.Ready, dq.Group("b"))
	must(t, err)
	equal(t, "cancelled", n, 1)
	n, err = q.PurgeFound(ctx, dq.Ready, dq.Type("mail"))
	must(t, err)
	equal(t, "purged", n, 2)
}
