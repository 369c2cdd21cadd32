package dq_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dq"
	"dq/redigo"
)

func TestRoutingIsThatOfTheServer(t *testing.T) {
	cli := connect(t)
	for partitions := 1; partitions <= 16384; partitions *= 2 {
		f, err := dq.NewFamily(cli, "fam", partitions)
		must(t, err)
		reply, err := cli.Do("DQ.PARTITIONS", "fam", fmt.Sprint(partitions))
		must(t, err)
		keys := f.Keys()
		for i, key := range reply.([]interface{}) {
			equal(t, "key", keys[i], string(key.([]byte)))
		}
		for i := 0; i < 100; i++ {
			group := fmt.Sprintf("group-%d-\xff", i*i)
			reply, err := cli.Do("DQ.ROUTE", "fam", fmt.Sprint(partitions), group)
			must(t, err)
			equal(t, "route", f.Route(group), string(reply.([]byte)))
		}
	}
	if _, err := dq.NewFamily(cli, "f{am", 2); err == nil {
		t.Fatal("a name with braces is accepted")
	}
	for _, partitions := range []int{-1, 0, 3, 32768} {
		if _, err := dq.NewFamily(cli, "fam", partitions); err == nil {
			t.Fatalf("%d partitions are accepted", partitions)
		}
	}
}

func newFamily(t *testing.T, partitions int) *dq.Family {
	cli := connect(t)
	f, err := dq.NewFamily(cli, t.Name(), partitions)
	must(t, err)
	for _, key := range f.Keys() {
		_, err := cli.Do("DEL", key)
		must(t, err)
	}
	must(t, f.Ensure(ctx, dq.Retain(time.Hour)))
	return f
}

func TestAWorkerOfAFamilyKeepsTheOrderOfGroups(t *testing.T) {
	f := newFamily(t, 4)
	for n := 0; n < 10; n++ {
		for g := 0; g < 8; g++ {
			_, err := f.Send(ctx, []byte(fmt.Sprint(n)), dq.Group(fmt.Sprint("group", g)))
			must(t, err)
		}
	}
	id, err := f.Send(ctx, []byte("0"), dq.ID("own"))
	must(t, err)
	equal(t, "id", id, "own")
	_, err = f.Send(ctx, []byte("0"))
	must(t, err)

	var mutex sync.Mutex
	next, queues := map[string]int{}, map[*dq.Queue]bool{}
	stop := running(t, &dq.Worker{Family: f, Concurrency: 5, Handler: func(_ context.Context, m *dq.Message) error {
		mutex.Lock()
		defer mutex.Unlock()
		if m.Group != "" && string(m.Payload) != fmt.Sprint(next[m.Group]) {
			t.Errorf("%s: %s comes where %d was expected", m.Group, m.Payload, next[m.Group])
		}
		next[m.Group]++
		queues[m.Queue] = true
		return nil
	}})
	waitFor(t, "all messages", func() bool {
		infos, err := f.Info(ctx)
		must(t, err)
		return len(infos) == 1 && infos[0].Int("finished") == 82
	})
	must(t, stop())
	equal(t, "queues", len(queues) > 1, true)
}

// nodes is a cluster as a Worker sees it. Its nodes are databases of the server.
type nodes []dq.RedisCli

func connectNodes(t *testing.T) (all nodes) {
	for db := 0; db < 3; db++ {
		cli := redigo.Dial(fmt.Sprint(url, "/", db))
		t.Cleanup(func() { cli.Close() })
		all = append(all, cli)
	}
	return all
}

func (n nodes) Do(args ...interface{}) (interface{}, error) {
	return n[crc32.ChecksumIEEE([]byte(args[1].(string)))%uint32(len(n))].Do(args...)
}

func (n nodes) Nodes(context.Context) ([]dq.RedisCli, error) { return n, nil }

func TestAWorkerWaitsAtAllNodesAndHandlesNoMoreThanItCan(t *testing.T) {
	cli := connectNodes(t)
	f, err := dq.NewFamily(cli, t.Name(), 16)
	must(t, err)
	for _, key := range f.Keys() {
		_, err := cli.Do("DEL", key)
		must(t, err)
	}
	must(t, f.Ensure(ctx, dq.Retain(time.Hour)))
	sum := func(name string) (sum int64) {
		infos, err := f.Info(ctx)
		must(t, err)
		equal(t, "nodes", len(infos), 3)
		for _, info := range infos {
			sum += info.Int(name)
		}
		return sum
	}

	var now, most int32
	stop := running(t, &dq.Worker{Family: f, Concurrency: 2, Handler: func(_ context.Context, m *dq.Message) error {
		if n := atomic.AddInt32(&now, 1); n > atomic.LoadInt32(&most) {
			atomic.StoreInt32(&most, n)
		}
		time.Sleep(2 * time.Millisecond)
		atomic.AddInt32(&now, -1)
		if m.Attempt != 1 {
			t.Errorf("attempt %d", m.Attempt)
		}
		return nil
	}})
	waitFor(t, "three that wait", func() bool { return sum("blocked-clients") == 3 })
	const all = 100
	for i := 0; i < all; i++ {
		_, err := f.Send(ctx, []byte("x"), dq.Group(fmt.Sprint("g", i%20)))
		must(t, err)
	}
	waitFor(t, "all messages", func() bool { return sum("finished") == all })
	must(t, stop())
	equal(t, "at once", most, 2)
	equal(t, "waiting", sum("blocked-clients"), int64(0))
	equal(t, "running", sum("running"), int64(0))
}

func TestAFamilyIsFetchedFromByHand(t *testing.T) {
	f := newFamily(t, 2)
	none, err := f.Fetch(ctx, nil)
	must(t, err)
	equal(t, "none", len(none), 0)
	_, err = f.Send(ctx, []byte("x"), dq.Group("g"))
	must(t, err)
	messages, err := f.Fetch(ctx, nil, dq.Block(time.Second), dq.Consumer("me"), dq.Token("t"))
	must(t, err)
	equal(t, "key", messages[0].Queue.Key(), f.Route("g"))
	acked, err := messages[0].Queue.Ack(ctx, dq.Receipts(messages[0]))
	must(t, err)
	equal(t, "acked", acked, 1)
}

func TestAGrowingFamilyKeepsTheOrderOfAGroup(t *testing.T) {
	small := newFamily(t, 2)
	large := newFamily(t, 4)
	large.GrownFrom = 2
	var moved, stays string
	for n := 0; moved == "" || stays == ""; n++ {
		if group := fmt.Sprint("g", n); small.Route(group) == large.Route(group) {
			stays = group
		} else {
			moved = group
		}
	}
	length := func(q *dq.Queue) int {
		n, err := q.Len(ctx)
		must(t, err)
		return n
	}
	put := func(f *dq.Family, group string, options ...dq.SendOption) string {
		id, err := f.Send(ctx, []byte("x"), append(options, dq.Group(group))...)
		must(t, err)
		return id
	}
	put(small, moved)
	equal(t, "id", put(large, moved, dq.ID("a")), "a")
	equal(t, "taken", put(large, moved, dq.ID("a")), "")
	equal(t, "before", length(small.Queue(moved)), 2)
	equal(t, "after", length(large.Queue(moved)), 0)
	_, err := small.Queue(moved).Purge(ctx)
	must(t, err)
	equal(t, "id", put(large, moved, dq.ID("a")), "a")
	equal(t, "after", length(large.Queue(moved)), 1)
	put(large, stays)
	equal(t, "the other group", length(large.Queue(stays)), 1)
	large.GrownFrom = 1
	if _, err := large.Send(ctx, nil, dq.Group(moved)); err == nil {
		t.Fatal("a family has grown from 1 to 4 partitions")
	}
}
