package dq

import (
	"context"
	"time"
)

// RedisCli is all that this package needs of a Redis client.
//
// Do runs one command and returns its reply: int64, []byte or string, []interface{}, or nil for a null. All arguments
// are strings. A client that speaks RESP3 may also return maps, float64 and bool. An error reply is an error that prints
// the server's text, such as "WRONGTYPE Operation against ...". A client that reports a null as an error returns ErrNil.
//
// It must be safe for concurrent use. A command that waits at the server (FETCH with BLOCK, WAIT) keeps its connection
// busy, so Do should take a connection of its own for each call, from a pool. The read timeout must be longer than the
// longest wait.
type RedisCli interface {
	Do(args ...interface{}) (interface{}, error)
}

// BlockingCli is a RedisCli that can end a wait at the server early. The adapters of this module are one.
//
// DoBlocking runs a command that waits at the server for up to wait, or without end if wait is 0. When ctx is done it
// makes the server end the wait, by CLIENT UNBLOCK from another connection, and returns the reply that the server then
// gives. So no reply is lost, and with it no message. With a client that only has Do, a wait ends when it is over.
type BlockingCli interface {
	RedisCli
	DoBlocking(ctx context.Context, wait time.Duration, args ...interface{}) (interface{}, error)
}

// NodesCli is a RedisCli of a cluster. Nodes returns a client of each primary. Family needs it to fetch from all nodes.
type NodesCli interface {
	RedisCli
	Nodes(ctx context.Context) ([]RedisCli, error)
}

// Unblocking runs a command that waits at the server, and returns its result. When ctx is done it calls unblock until
// the command has returned, or unblock fails. It is what adapters build DoBlocking on. unblock may come before the
// command has reached the server, so it is repeated.
func Unblocking(ctx context.Context, run func() (interface{}, error), unblock func() error) (interface{}, error) {
	if ctx.Done() == nil {
		return run()
	}
	ended, watching := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		for pause := time.Millisecond; unblock() == nil; pause *= 2 {
			select {
			case <-ended:
				return
			case <-time.After(pause):
			}
		}
	}()
	reply, err := run()
	close(ended)
	// A late unblock would end the next wait of this connection.
	<-watching
	return reply, err
}

// do runs one command. A null is nil, an error is a *ServerError or a *ConnError.
func do(cli RedisCli, command []string) (interface{}, error) {
	return checked(cli.Do(arguments(command)...))
}

// doBlocking runs a command that waits at the server.
func doBlocking(ctx context.Context, cli RedisCli, wait time.Duration, command []string) (interface{}, error) {
	if blocking, ok := cli.(BlockingCli); ok {
		return checked(blocking.DoBlocking(ctx, wait, arguments(command)...))
	}
	return do(cli, command)
}

func arguments(command []string) []interface{} {
	args := make([]interface{}, len(command))
	for i, one := range command {
		args[i] = one
	}
	return args
}
