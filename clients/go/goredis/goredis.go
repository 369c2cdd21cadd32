//go:build goredis

// Package goredis lets package dq use go-redis v9. It is only built with the tag goredis, so that programs that use
// another client need no go-redis: go build -tags goredis.
package goredis

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"dq"
)

// slack is how much longer than a wait at the server the reply may take.
const slack = 5 * time.Second

// Client is a dq.RedisCli over a client of go-redis. It may be used by several goroutines.
//
// Set MaxRetries of go-redis to -1: by itself go-redis repeats any command whose reply was lost, and that would add the
// messages of Queue.SendMany twice. Queue.Send and a Worker repeat what may be repeated.
type Client struct {
	client processor
}

type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Do runs a command.
func (c *Client) Do(args ...interface{}) (interface{}, error) {
	return process(context.Background(), c.client, args)
}

func process(ctx context.Context, by processor, args []interface{}) (interface{}, error) {
	command := redis.NewCmd(ctx, args...)
	_ = by.Process(ctx, command)
	reply, err := command.Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return reply, err
}

// Single is a Client of one server, and a dq.BlockingCli.
type Single struct {
	Client
	redis *redis.Client

	mutex   sync.Mutex
	waiters map[time.Duration][]waiter
}

// waiter is a connection for commands that wait, with the id by which another connection can end the wait.
type waiter struct {
	conn *redis.Conn
	id   int64
}

var (
	_ dq.BlockingCli = (*Single)(nil)
	_ dq.PipelineCli = (*Single)(nil)
)

// New returns a client of one server, or of the primary that Sentinels name (redis.NewFailoverClient).
func New(client *redis.Client) *Single {
	return &Single{Client: Client{client}, redis: client, waiters: map[time.Duration][]waiter{}}
}

// DoPipeline runs commands on one connection. See dq.PipelineCli.
func (c *Single) DoPipeline(_ string, wait time.Duration, commands ...[]interface{}) ([]interface{}, error) {
	return pipelined(c.redis, wait, commands)
}

func pipelined(client *redis.Client, wait time.Duration, commands [][]interface{}) ([]interface{}, error) {
	ctx, pipeline := context.Background(), client.WithTimeout(wait+slack).Pipeline()
	sent := make([]*redis.Cmd, len(commands))
	for i, args := range commands {
		sent[i] = pipeline.Do(ctx, args...)
	}
	// Exec returns the first error, and that may be a null.
	_, _ = pipeline.Exec(ctx)
	replies := make([]interface{}, len(commands))
	for i, one := range sent {
		reply, err := one.Result()
		var refused redis.Error
		switch {
		case errors.Is(err, redis.Nil):
		case errors.As(err, &refused):
			replies[i] = err
		case err != nil:
			return nil, err
		default:
			replies[i] = reply
		}
	}
	return replies, nil
}

// DoBlocking runs a command that waits at the server. See dq.BlockingCli.
func (c *Single) DoBlocking(ctx context.Context, wait time.Duration, args ...interface{}) (interface{}, error) {
	w := c.waiter(wait)
	reply, err := dq.Unblocking(ctx,
		// Not with ctx: the reply must be read, because it may have messages.
		func() (interface{}, error) { return process(context.Background(), w.conn, args) },
		func() error {
			if w.id == 0 {
				return errors.New("the connection has no id")
			}
			return c.redis.ClientUnblock(context.Background(), w.id).Err()
		})
	if err != nil {
		// The connection may be broken. An error reply is rare enough not to be told from that.
		_ = w.conn.Close()
		return reply, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.waiters[wait] = append(c.waiters[wait], w)
	return reply, nil
}

func (c *Single) waiter(wait time.Duration) waiter {
	w, found := c.idleWaiter(wait)
	if !found {
		timeout := wait + slack
		if wait == 0 {
			timeout = 0
		}
		w.conn = c.redis.WithTimeout(timeout).Conn()
	}
	// Without an id a wait cannot be ended early. It may be missing because the server was loading.
	if w.id == 0 {
		w.id, _ = w.conn.ClientID(context.Background()).Result()
	}
	return w
}

func (c *Single) idleWaiter(wait time.Duration) (w waiter, found bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	last := len(c.waiters[wait]) - 1
	if last < 0 {
		return w, false
	}
	w, c.waiters[wait] = c.waiters[wait][last], c.waiters[wait][:last]
	return w, true
}

// Cluster is a Client of a Redis Cluster, and a dq.NodesCli. A wait of Fetch on a queue ends when its Block is over, which
// must be shorter than the ReadTimeout of go-redis (3 seconds by default).
type Cluster struct {
	Client
	redis *redis.ClusterClient

	mutex sync.Mutex
	nodes map[*redis.Client]*Single
}

var (
	_ dq.NodesCli    = (*Cluster)(nil)
	_ dq.PipelineCli = (*Cluster)(nil)
)

// NewCluster returns a client of a cluster.
func NewCluster(client *redis.ClusterClient) *Cluster {
	return &Cluster{Client: Client{client}, redis: client, nodes: map[*redis.Client]*Single{}}
}

// DoPipeline runs commands on one connection to the primary that has the key. See dq.PipelineCli.
func (c *Cluster) DoPipeline(key string, wait time.Duration, commands ...[]interface{}) ([]interface{}, error) {
	node, err := c.redis.MasterForKey(context.Background(), key)
	if err != nil {
		return nil, err
	}
	return pipelined(node, wait, commands)
}

// Nodes returns a client of each primary: the same one for the same node.
func (c *Cluster) Nodes(ctx context.Context) (nodes []dq.RedisCli, err error) {
	there := map[*redis.Client]*Single{}
	err = c.redis.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if there[node] = c.nodes[node]; there[node] == nil {
			there[node] = New(node)
		}
		nodes = append(nodes, there[node])
		return nil
	})
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err == nil {
		c.nodes = there
	}
	return nodes, err
}
