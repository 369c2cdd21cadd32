package dq

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Family is one logical queue that is divided into partitions, which lie evenly over the nodes of a cluster. All messages
// of a group belong to the same partition, so groups keep their order. It may be used by several goroutines.
//
// If the client is a NodesCli, the family is fetched from all nodes, with one waiting connection for each. Otherwise it is
// on one server.
type Family struct {
	// Patience is the Patience of each queue, see Queue. Set it before the first use.
	Patience time.Duration
	// Durable is the Durable of each queue, see Queue.
	Durable *Durable
	// Middleware is that of each queue, see Queue.
	Middleware []Middleware
	// GrownFrom is half of the number of partitions while the family grows from that number, and else 0. A message then
	// goes to the queue that its group had before, as long as that has messages of the group. So groups keep their order.
	GrownFrom int

	cli    RedisCli
	name   string
	keys   []string
	mutex  sync.Mutex
	queues map[string]*Queue
}

// NewFamily returns the family of a name. The number of partitions is a power of two, the same for all who send to it.
func NewFamily(cli RedisCli, name string, partitions int) (*Family, error) {
	if name == "" || strings.ContainsAny(name, "{}") {
		return nil, fmt.Errorf("dq: a family has a name without braces, not %q", name)
	}
	if err := checkPartitions(partitions); err != nil {
		return nil, err
	}
	f := &Family{Patience: 10 * time.Second, cli: cli, name: name, queues: map[string]*Queue{}}
	f.keys = keysOf(name, partitions)
	return f, nil
}

func keysOf(name string, partitions int) (keys []string) {
	for _, tag := range tags(partitions) {
		keys = append(keys, name+":{"+tag+"}")
	}
	return keys
}

// Keys returns the keys of all partitions, in order: what DQ.PARTITIONS replies.
func (f *Family) Keys() []string { return append([]string{}, f.keys...) }

// Route returns the key of the partition that a group belongs to: what DQ.ROUTE replies.
func (f *Family) Route(group string) string { return f.keys[partitionOf(group, len(f.keys))] }

// Queue returns the partition that a group belongs to.
func (f *Family) Queue(group string) *Queue { return f.queue(f.Route(group)) }

// Queues returns all partitions.
func (f *Family) Queues() []*Queue {
	queues := make([]*Queue, len(f.keys))
	for i, key := range f.keys {
		queues[i] = f.queue(key)
	}
	return queues
}

func (f *Family) queue(key string) *Queue {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.queues[key] == nil {
		f.queues[key] = NewQueue(f.cli, key)
		f.queues[key].Patience, f.queues[key].Durable, f.queues[key].Middleware = f.Patience, f.Durable, f.Middleware
	}
	return f.queues[key]
}

// Send adds a message to the partition of its Group. A message without a group goes to that of its ID, which is a new UUID
// if none is given. It returns what Queue.Send returns.
func (f *Family) Send(ctx context.Context, payload []byte, options ...SendOption) (string, error) {
	id, isOwn := valueOf(options, "ID")
	if !isOwn {
		id = newID()
		options = append(append([]SendOption{}, options...), ID(id))
	}
	group, hasGroup := valueOf(options, "GROUP")
	if !hasGroup {
		return f.Queue(id).Send(ctx, payload, options...)
	}
	if f.GrownFrom > 0 {
		sent, there, err := f.sendBefore(ctx, group, id, payload, options)
		if err != nil || there {
			if !isOwn && err == nil {
				sent = id
			}
			return sent, err
		}
	}
	sent, err := f.Queue(group).Send(ctx, payload, options...)
	if err == nil && sent == "" && !isOwn && !has(options, "IFGROUP") {
		sent = id
	}
	return sent, err
}

// sendBefore sends a message to the queue that its group had before the family has grown, if that has messages of the
// group. It returns whether the message is there.
func (f *Family) sendBefore(
	ctx context.Context, group, id string, payload []byte, options []SendOption,
) (sent string, there bool, err error) {
	if 2*f.GrownFrom != len(f.keys) {
		return "", false, fmt.Errorf("dq: GrownFrom is half of the %d partitions, not %d", len(f.keys), f.GrownFrom)
	}
	key := keysOf(f.name, f.GrownFrom)[partitionOf(group, f.GrownFrom)]
	if key == f.Route(group) {
		return "", false, nil
	}
	before := f.queue(key)
	sent, err = before.Send(ctx, payload, append(append([]SendOption{}, options...), IfGroup())...)
	if err != nil || sent != "" {
		return sent, err == nil, err
	}
	// Either the group has no messages there, or the id is taken.
	taken, err := before.Get(ctx, id)
	return "", taken != nil, err
}

// valueOf returns the value of an option that has one.
func valueOf(options []SendOption, name string) (value string, found bool) {
	for _, one := range options {
		if words := one.sendWords(); len(words) == 2 && words[0] == name {
			return words[1], true
		}
	}
	return "", false
}

// Ensure makes all partitions, or gives them these options.
func (f *Family) Ensure(ctx context.Context, options ...QueueOption) error {
	for _, queue := range f.Queues() {
		if err := queue.Ensure(ctx, options...); err != nil {
			return err
		}
	}
	return nil
}

// Fetch takes messages of one partition on a node, or on the only server if node is nil. It waits like Queue.Fetch. Settle
// the messages on their Queue. A Worker does all this, for all nodes.
func (f *Family) Fetch(ctx context.Context, node RedisCli, options ...FetchOption) ([]*Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if node == nil {
		node = f.cli
	}
	messages, err := familyOnNode{f, node}.fetch(ctx, fetchWords(options))
	if err == nil && len(messages) == 0 {
		err = ctx.Err()
	}
	return messages, err
}

// Info returns the sums over the partitions of each node. A sum of the sums is that of the family.
func (f *Family) Info(ctx context.Context) ([]Info, error) {
	nodes, err := f.nodes(ctx)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, len(nodes))
	for i, node := range nodes {
		reply, err := do(node, []string{"DQ.NINFO", f.name})
		if infos[i], err = read(reply, err, info); err != nil {
			return nil, err
		}
	}
	return infos, nil
}

func (f *Family) nodes(ctx context.Context) ([]RedisCli, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cluster, ok := f.cli.(NodesCli)
	if !ok {
		return []RedisCli{f.cli}, nil
	}
	nodes, err := cluster.Nodes(ctx)
	_, err = checked(nil, err)
	return nodes, err
}

// familyOnNode is the partitions of a family on one node, as a source of a Worker.
type familyOnNode struct {
	family *Family
	node   RedisCli
}

func (s familyOnNode) acksToo() bool { return false }

func (s familyOnNode) fetch(ctx context.Context, words []string) ([]*Message, error) {
	command := append([]string{"DQ.NFETCH", s.family.name, "WITHMETA"}, words...)
	reply, err := waiting(ctx, s.node, command, words)
	return read(reply, err, func(value interface{}) []*Message {
		if value == nil {
			return nil
		}
		both := listOf(2, value)
		return each(s.family.queue(text(both[0])).delivery)(both[1])
	})
}

// overFamily fetches from the family until the worker stops.
func (r *run) overFamily() {
	if _, isCluster := r.Family.cli.(NodesCli); isCluster {
		r.overNodes()
	} else {
		r.loop(r.fetching, familyOnNode{r.Family, r.Family.cli}, r.Consumer)
	}
}

// overNodes runs a loop for each node, until the worker stops. After each empty reply it looks for nodes that have come or
// gone: when slots move, the server sends those who wait away with an empty reply.
func (r *run) overNodes() {
	var loops sync.WaitGroup
	ends := map[RedisCli]context.CancelFunc{}
	empty := make(chan struct{}, 1)
	for made := 0; r.fetching.Err() == nil; {
		nodes, err := r.Family.nodes(r.fetching)
		if err != nil && !IsTransient(err) && r.fetching.Err() == nil {
			r.fail(err)
		} else if err != nil {
			r.Logf("dq: the nodes are unknown, trying again: %v", err)
			sleep(r.fetching, pauseAfter(5))
			continue
		}
		there := map[RedisCli]bool{}
		for _, node := range nodes {
			there[node] = true
			if ends[node] != nil {
				continue
			}
			ctx, end := context.WithCancel(r.fetching)
			ends[node] = end
			// TOKEN is about the last delivery of a consumer, so each loop is one.
			consumer := r.Consumer + "/" + count(made)
			made++
			loops.Add(1)
			go func(node RedisCli) {
				defer loops.Done()
				r.loopOnNode(ctx, familyOnNode{r.Family, node}, consumer, empty)
			}(node)
		}
		for node, end := range ends {
			if !there[node] {
				end()
				delete(ends, node)
			}
		}
		select {
		case <-r.fetching.Done():
		case <-empty:
		}
	}
	loops.Wait()
	for _, end := range ends {
		end()
	}
}

// loopOnNode fetches from one of several nodes until ctx is done. It takes a place only for a moment, as the other nodes
// need it too: it asks the node, and if that has nothing, it waits there for one message without a place. If there is no
// place when the message comes, it gives the message back, and another consumer gets it at once.
func (r *run) loopOnNode(ctx context.Context, node source, consumer string, empty chan<- struct{}) {
	for {
		places := r.take(ctx)
		if places == 0 {
			return
		}
		batch := r.fetch(ctx, node, consumer, places, 0)
		r.release(places - len(batch))
		if ctx.Err() == nil && len(batch) == 0 {
			if batch = r.fetch(ctx, node, consumer, 1, r.Block); len(batch) == 0 {
				select {
				case empty <- struct{}{}:
				default:
				}
			}
			if free := r.takeFree(len(batch)); free < len(batch) {
				r.release(free)
				r.giveBack(batch)
				batch = nil
			}
		}
		if ctx.Err() != nil {
			r.release(len(batch))
			r.giveBack(batch)
			return
		}
		r.begin(batch)
	}
}
