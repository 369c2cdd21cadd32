// Package redigo lets package dq use redigo.
package redigo

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"dq"
)

// slack is how much longer than a wait at the server the reply may take.
const slack = 5 * time.Second

// Client is a dq.BlockingCli over a pool of redigo. It may be used by several goroutines.
//
// Do takes a connection from the pool for each command. A command that waits keeps one for itself, which is then kept for
// the next such command, so one worker has one more connection than it has commands under way.
type Client struct {
	pool *redis.Pool

	mutex   sync.Mutex
	waiters []waiter
	closed  bool
}

// waiter is a connection for commands that wait, with the id by which another connection can end the wait.
type waiter struct {
	conn redis.Conn
	id   interface{}
}

var (
	_ dq.BlockingCli = (*Client)(nil)
	_ dq.PipelineCli = (*Client)(nil)
)

// New returns a client over a pool of yours. The pool should not have a small MaxActive.
func New(pool *redis.Pool) *Client { return &Client{pool: pool} }

// Dial returns a client of the server of a URL: redis://user:password@host:6379/0. It connects at the first command, gives
// up on a reply after 10 seconds (later for a command that waits), and has up to 16 idle connections. options come after
// these.
func Dial(address string, options ...redis.DialOption) *Client {
	options = append([]redis.DialOption{
		redis.DialConnectTimeout(5 * time.Second),
		redis.DialReadTimeout(10 * time.Second),
		redis.DialWriteTimeout(10 * time.Second),
	}, options...)
	return New(&redis.Pool{
		MaxIdle:     16,
		IdleTimeout: 4 * time.Minute,
		Dial:        func() (redis.Conn, error) { return dial(address, options) },
		TestOnBorrow: func(conn redis.Conn, since time.Time) error {
			if time.Since(since) < time.Minute {
				return nil
			}
			_, err := conn.Do("PING")
			return err
		},
	})
}

func dial(address string, options []redis.DialOption) (redis.Conn, error) {
	// Errors are logged. The errors of the parser, of redigo and of the look-up of the host would show a part of the
	// password.
	if parts, err := url.Parse(address); err != nil || hasLateAt(parts) {
		return nil, errors.New("redigo: the URL is not redis://user:password@host:port/database; " +
			"a password with /, # or ? must be escaped")
	}
	return redis.DialURL(address, options...)
}

// hasLateAt reports whether an @ comes after the part that was taken for the host. That part belongs to the password
// then.
func hasLateAt(parts *url.URL) bool {
	name, _, _ := strings.Cut(parts.RawQuery, "=")
	return strings.Contains(parts.Opaque+parts.Path+parts.Fragment+name, "@")
}

// Do runs a command.
func (c *Client) Do(args ...interface{}) (interface{}, error) {
	name, rest, err := command(args)
	if err != nil {
		return nil, err
	}
	conn := c.pool.Get()
	defer conn.Close()
	return conn.Do(name, rest...)
}

// DoPipeline runs commands on one connection. See dq.PipelineCli.
func (c *Client) DoPipeline(_ string, wait time.Duration, commands ...[]interface{}) ([]interface{}, error) {
	conn := c.pool.Get()
	defer conn.Close()
	for _, args := range commands {
		name, rest, err := command(args)
		if err == nil {
			err = conn.Send(name, rest...)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := conn.Flush(); err != nil {
		return nil, err
	}
	replies := make([]interface{}, len(commands))
	for i := range replies {
		reply, err := redis.ReceiveWithTimeout(conn, wait+slack)
		var refused redis.Error
		switch {
		case errors.As(err, &refused):
			replies[i] = refused
		case err != nil:
			return nil, err
		default:
			replies[i] = reply
		}
	}
	return replies, nil
}

// DoBlocking runs a command that waits at the server. See dq.BlockingCli.
func (c *Client) DoBlocking(ctx context.Context, wait time.Duration, args ...interface{}) (interface{}, error) {
	name, rest, err := command(args)
	if err != nil {
		return nil, err
	}
	w := c.waiter()
	timeout := wait + slack
	if wait == 0 {
		timeout = 0
	}
	reply, err := dq.Unblocking(ctx,
		func() (interface{}, error) { return redis.DoWithTimeout(w.conn, timeout, name, rest...) },
		func() error {
			if w.id == nil {
				return errors.New("the connection has no id")
			}
			_, err := c.Do("CLIENT", "UNBLOCK", w.id)
			return err
		})
	c.keep(w)
	return reply, err
}

// waiter returns a connection for a command that waits. If it is broken, the command will say so.
func (c *Client) waiter() waiter {
	w, found := c.idleWaiter()
	if !found {
		w.conn = c.pool.Get()
	}
	// Without an id a wait cannot be ended early. It may be missing because the server was loading.
	if w.id == nil {
		if id, err := w.conn.Do("CLIENT", "ID"); err == nil {
			w.id = id
		}
	}
	return w
}

func (c *Client) idleWaiter() (w waiter, found bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	last := len(c.waiters) - 1
	if last < 0 {
		return w, false
	}
	w, c.waiters = c.waiters[last], c.waiters[:last]
	return w, true
}

// keep takes a connection back.
func (c *Client) keep(w waiter) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if w.conn.Err() != nil || c.closed {
		w.conn.Close()
		return
	}
	c.waiters = append(c.waiters, w)
}

// Close closes all connections that are not in use.
func (c *Client) Close() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.closed = true
	for _, w := range c.waiters {
		w.conn.Close()
	}
	c.waiters = nil
	return c.pool.Close()
}

func command(args []interface{}) (string, []interface{}, error) {
	if len(args) == 0 {
		return "", nil, errors.New("redigo: no command")
	}
	name, ok := args[0].(string)
	if !ok {
		return "", nil, errors.New("redigo: the name of a command is a string")
	}
	return name, args[1:], nil
}
