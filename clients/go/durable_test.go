package dq_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"dq"
	"dq/dqtest"
	"dq/redigo"
)

// replicated returns a client of a server with one replica.
func replicated(t *testing.T) *redigo.Client {
	if os.Getenv("DQ_CLI") == "" {
		t.Skip("DQ_CLI names no program")
	}
	primary := redigo.Dial(dqtest.Server(t))
	replica := dqtest.Server(t)
	_, err := primary.Do("CONFIG", "SET", "repl-diskless-sync-delay", "0")
	must(t, err)
	port, err := primary.Do("CONFIG", "GET", "port")
	must(t, err)
	_, err = redigo.Dial(replica).Do("REPLICAOF", "127.0.0.1", string(port.([]interface{})[1].([]byte)))
	must(t, err)
	waitFor(t, "the replica", func() bool {
		heard, err := primary.Do("WAIT", "1", "1000")
		must(t, err)
		return heard == int64(1)
	})
	return primary
}

func unconfirmed(t *testing.T, err error) *dq.NotConfirmedError {
	t.Helper()
	var missing *dq.NotConfirmedError
	if !errors.As(err, &missing) {
		t.Fatalf("it is no NotConfirmedError: %v", err)
	}
	return missing
}

func TestWhatReplicasHaveIsConfirmed(t *testing.T) {
	q := dq.NewQueue(replicated(t), "q")
	q.Durable = &dq.Durable{Replicas: 1, InMemory: true}
	id := send(t, q, "a")
	_, err := q.SendMany(ctx, [][]byte{[]byte("b"), []byte("c")})
	must(t, err)
	_, _, err = q.GroupPush(ctx, []byte(`{"g":"x"}`), dq.Paths{Group: []string{"g"}})
	must(t, err)
	messages := fetch(t, q, dq.Count(4))
	equal(t, "id", messages[0].ID, id)
	acked, err := q.Ack(ctx, dq.Receipts(messages[:1]...))
	must(t, err)
	equal(t, "acked", acked, 1)
	nacked, err := q.Nack(ctx, dq.Receipts(messages[1:2]...))
	must(t, err)
	equal(t, "nacked", nacked, 1)
	_, err = q.AckSend(ctx, messages[2].Receipt, dq.Next{Payload: []byte("d")})
	must(t, err)
	q.Durable.Replicas, q.Durable.Timeout, q.Patience = 2, 20*time.Millisecond, 0
	_, err = q.Send(ctx, []byte("e"))
	equal(t, "replicas", unconfirmed(t, err).Replicas, 1)
}

func TestASendThatNobodyConfirmsIsAnErrorThatNamesItsID(t *testing.T) {
	q := newQueue(t)
	q.Durable, q.Patience = &dq.Durable{Replicas: 1, InMemory: true, Timeout: 10 * time.Millisecond}, 0
	_, err := q.Send(ctx, []byte("a"))
	missing := unconfirmed(t, err)
	equal(t, "replicas", missing.Replicas, 0)
	if record := get(t, q, missing.ID); string(record.Payload) != "a" {
		t.Fatal(record)
	}
	messages := fetch(t, q)
	_, err = q.Ack(ctx, dq.Receipts(messages...))
	equal(t, "acked", unconfirmed(t, err).Reply.(int64), 1)
	n, err := q.Len(ctx)
	must(t, err)
	equal(t, "len", n, 0)
}

func TestASendIsRepeatedByItsIDUntilItIsConfirmed(t *testing.T) {
	cli := &forgetful{Client: connect(t), confirmations: []interface{}{
		[]interface{}{int64(0), int64(0)}, []interface{}{int64(1), int64(0)}, []interface{}{int64(1), int64(1)},
	}}
	q := queueOver(t, cli)
	q.Durable = &dq.Durable{Replicas: 1}
	equal(t, "id", send(t, q, "a", dq.ID("mine")), "mine")
	equal(t, "confirmations left", len(cli.confirmations), 0)
	n, err := q.Len(ctx)
	must(t, err)
	equal(t, "len", n, 1)
	equal(t, "duplicates", infoOf(t, q, "duplicates"), 2)
}

func TestAServerThatCannotConfirmSaysSo(t *testing.T) {
	q := newQueue(t)
	q.Durable = &dq.Durable{Timeout: time.Second}
	_, err := q.Send(ctx, []byte("a"))
	// The server has no log, or is too old for WAITAOF.
	if text := unconfirmed(t, err).Error(); !strings.Contains(text, "appendonly") && !strings.Contains(text, "Redis 7.2") {
		t.Fatal(text)
	}
}

// forgetful is a client that loses the reply to its next pipelines, or puts other confirmations into them.
type forgetful struct {
	*redigo.Client
	losses        int
	confirmations []interface{}
}

func (c *forgetful) DoPipeline(key string, wait time.Duration, commands ...[]interface{}) ([]interface{}, error) {
	replies, err := c.Client.DoPipeline(key, wait, commands...)
	if c.losses > 0 {
		c.losses--
		return nil, errors.New("the connection was lost")
	}
	if len(c.confirmations) > 0 {
		replies[1], c.confirmations = c.confirmations[0], c.confirmations[1:]
	}
	return replies, err
}

func TestWhatWasDoneBeforeTheConnectionBrokeIsNotDoneTwice(t *testing.T) {
	cli := &forgetful{Client: replicated(t)}
	q := dq.NewQueue(cli, "q")
	q.Durable = &dq.Durable{Replicas: 1, InMemory: true}
	cli.losses = 1
	send(t, q, "a")
	n, err := q.Len(ctx)
	must(t, err)
	equal(t, "len", n, 1)
	receipts := dq.Receipts(fetch(t, q)...)
	cli.losses = 1
	_, err = q.Ack(ctx, receipts)
	if text := unconfirmed(t, err).Error(); !strings.Contains(text, "stale") {
		t.Fatal(text)
	}
}

// plain is a client that has no pipelines.
type plain struct{ cli *redigo.Client }

func (c plain) Do(args ...interface{}) (interface{}, error) { return c.cli.Do(args...) }

func TestDurableNeedsAClientWithPipelines(t *testing.T) {
	q := queueOver(t, plain{connect(t)})
	q.Durable = &dq.Durable{}
	if _, err := q.Send(ctx, []byte("a")); err == nil || !strings.Contains(err.Error(), "PipelineCli") {
		t.Fatal(err)
	}
	n, err := q.Len(ctx)
	must(t, err)
	equal(t, "len", n, 0)
}
