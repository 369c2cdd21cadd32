package dq

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

const offloadHeader = "dq-offload"

// The payloads that are remembered after they were opened.
const mostOpened = 100

// Store is where Offload keeps payloads, such as S3. Get returns nil for a key that it does not have.
type Store interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, payload []byte) error
	Delete(ctx context.Context, key string) error
}

// Offload is a Middleware that keeps large payloads in a store, alike in all languages (docs/secrets.md). A worker deletes what
// it has opened when the record is gone. The sorted set "QUEUE:offload" lists all, and Sweep finds the others.
type Offload struct {
	Store Store
	Cli   RedisCli
	// Above is the most bytes that a message keeps itself, 64 KiB by default.
	Above int
	// Queues has the keys of other queues that messages may have gone to (DEADTO).
	Queues []string

	mutex  sync.Mutex
	opened []offloaded
}

// A payload in the store, and the queue to which its message was sent.
type offloaded struct{ queue, key string }

// Send keeps the payload in the store, if it is large, and sends the message.
func (o *Offload) Send(ctx context.Context, s *Sending, next func(context.Context) (string, error)) (string, error) {
	return o.sealing(ctx).send(ctx, s, next)
}

// Handle gives the handler the message with its payload.
func (o *Offload) Handle(ctx context.Context, m *Message, next Handler) error {
	return o.opening(ctx).handle(ctx, m, next)
}

// Seal keeps a payload in the store, if it is large.
func (o *Offload) Seal(queue, id string, payload []byte, headers map[string]string) ([]byte, map[string]string, error) {
	return o.sealing(context.Background())(queue, id, payload, headers)
}

// Open returns the payload.
func (o *Offload) Open(queue, id string, payload []byte, headers map[string]string) ([]byte, map[string]string, error) {
	return o.opening(context.Background())(queue, id, payload, headers)
}

func (o *Offload) sealing(ctx context.Context) coding {
	return func(queue, id string, payload []byte, headers map[string]string) ([]byte, map[string]string, error) {
		above := o.Above
		if above <= 0 {
			above = 64 << 10
		}
		if len(payload) <= above {
			return payload, headers, nil
		}
		key := queue + "/" + id + "/" + newID()
		// It is listed before it is there, so that nothing stays that no list has.
		if _, err := do(o.Cli, []string{"ZADD", queue + ":offload", unixMillis(time.Now()), key}); err != nil {
			return nil, nil, err
		}
		if err := o.Store.Put(ctx, key, payload); err != nil {
			return nil, nil, err
		}
		o.lookBack(ctx)
		return []byte{}, with(headers, offloadHeader, key), nil
	}
}

func (o *Offload) opening(ctx context.Context) coding {
	return func(queue, id string, payload []byte, headers map[string]string) ([]byte, map[string]string, error) {
		key, given := headers[offloadHeader]
		if !given {
			return payload, headers, nil
		}
		kept, err := o.Store.Get(ctx, key)
		if err == nil && kept == nil {
			err = fmt.Errorf("the store has no %q", key)
		}
		if err != nil {
			return nil, nil, err
		}
		o.lookBack(ctx)
		// One that was sent to another queue is left to Sweep.
		if strings.HasPrefix(key, queue+"/"+id+"/") {
			o.remember(offloaded{queue, key})
		}
		return kept, without(headers, offloadHeader), nil
	}
}

// Sweep deletes the payloads of a queue whose messages and records are gone. It returns how many. Only those that were put, or
// found to be needed, longer ago than after are looked at: a message must have reached its queue within that time. A week
// is a good choice. Run it now and then, in one program.
func (o *Offload) Sweep(ctx context.Context, queue string, after time.Duration) (deleted int, err error) {
	list := queue + ":offload"
	reply, err := do(o.Cli, []string{"ZRANGEBYSCORE", list, "0", unixMillis(time.Now().Add(-after))})
	keys, err := read(reply, err, texts)
	for _, key := range keys {
		if err != nil {
			return deleted, err
		}
		var gone bool
		if gone, err = o.goes(ctx, offloaded{queue, key}); gone {
			deleted++
		} else if err == nil {
			_, err = do(o.Cli, []string{"ZADD", list, unixMillis(time.Now()), key})
		}
	}
	return deleted, err
}

func (o *Offload) remember(one offloaded) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if len(o.opened) < mostOpened {
		o.opened = append(o.opened, one)
	}
}

// lookBack deletes up to two payloads that were opened here before, if their messages and records are gone by now.
func (o *Offload) lookBack(ctx context.Context) {
	o.mutex.Lock()
	count := len(o.opened)
	if count > 2 {
		count = 2
	}
	some := o.opened[:count]
	o.opened = o.opened[len(some):]
	o.mutex.Unlock()
	for _, one := range some {
		// What fails here is left to Sweep. A dead message may have taken its payload along.
		info, err := NewQueue(o.Cli, one.queue).Info(ctx)
		if to := info.Text("deadto"); err != nil || (to != "" && !o.knows(to)) {
			continue
		}
		if gone, err := o.goes(ctx, one); !gone && err == nil {
			o.remember(one)
		}
	}
}

func (o *Offload) knows(queue string) bool {
	for _, one := range o.Queues {
		if one == queue {
			return true
		}
	}
	return false
}

// goes deletes a payload, if no message and no record needs it. It returns whether it did.
func (o *Offload) goes(ctx context.Context, one offloaded) (bool, error) {
	if needed, err := o.isNeeded(ctx, one.queue, one.key); needed || err != nil {
		return false, err
	}
	if err := o.Store.Delete(ctx, one.key); err != nil {
		return false, err
	}
	_, err := do(o.Cli, []string{"ZREM", one.queue + ":offload", one.key})
	return true, err
}

func (o *Offload) isNeeded(ctx context.Context, queue, key string) (bool, error) {
	id := strings.TrimPrefix(key[:strings.LastIndex(key, "/")], queue+"/")
	for _, one := range append([]string{queue}, o.Queues...) {
		record, err := NewQueue(o.Cli, one).Get(ctx, id)
		if err != nil || (record != nil && record.Headers[offloadHeader] == key) {
			return err == nil, err
		}
	}
	return false, nil
}
