// Package redis declares the parts of go-redis v9 that goredis/ and delayqueue/ use, so that they can be compiled where
// go-redis is not available. It does nothing.
package redis

import (
	"context"
	"errors"
	"time"
)

// Nil is the error for a null.
var Nil = errors.New("redis: nil")

// Error is an error reply, and Nil.
type Error interface {
	error
	RedisError()
}

type Cmder interface{ Err() error }

type Cmd struct{}

func NewCmd(ctx context.Context, args ...interface{}) *Cmd { return &Cmd{} }
func (c *Cmd) Err() error                                  { return nil }
func (c *Cmd) Result() (interface{}, error)                { return nil, nil }

type IntCmd struct{}

func (c *IntCmd) Err() error             { return nil }
func (c *IntCmd) Result() (int64, error) { return 0, nil }

type Client struct{}

func (c *Client) Process(ctx context.Context, cmd Cmder) error        { return nil }
func (c *Client) WithTimeout(timeout time.Duration) *Client           { return c }
func (c *Client) Conn() *Conn                                         { return &Conn{} }
func (c *Client) ClientUnblock(ctx context.Context, id int64) *IntCmd { return &IntCmd{} }

func (c *Client) Pipeline() Pipeliner { return nil }

type Pipeliner interface {
	Do(ctx context.Context, args ...interface{}) *Cmd
	Exec(ctx context.Context) ([]Cmder, error)
}

type Conn struct{}

func (c *Conn) Process(ctx context.Context, cmd Cmder) error { return nil }
func (c *Conn) ClientID(ctx context.Context) *IntCmd         { return &IntCmd{} }
func (c *Conn) Close() error                                 { return nil }

type ClusterClient struct{}

func (c *ClusterClient) Process(ctx context.Context, cmd Cmder) error { return nil }
func (c *ClusterClient) ForEachMaster(ctx context.Context, fn func(ctx context.Context, client *Client) error) error {
	return nil
}

func (c *ClusterClient) MasterForKey(ctx context.Context, key string) (*Client, error) {
	return &Client{}, nil
}
