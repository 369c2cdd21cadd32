package dq_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"dq"
	"dq/redigo"
)

// example returns a queue for an example.
func example(key string) (*dq.Queue, func()) {
	cli := redigo.Dial(url)
	if _, err := cli.Do("DEL", key); err != nil {
		log.Fatal(err)
	}
	return dq.NewQueue(cli, key), func() { cli.Close() }
}

func ExampleQueue_Send() {
	mails, done := example("mails")
	defer done()
	ctx := context.Background()

	_ = mails.Ensure(ctx, dq.Retries(5), dq.Backoff(dq.Exp, time.Second), dq.Dedup(time.Minute))
	id, _ := mails.Send(ctx, []byte("remind ann"), dq.ID("remind:ann"), dq.Delay(time.Hour))
	again, _ := mails.Send(ctx, []byte("remind ann"), dq.ID("remind:ann"), dq.Delay(time.Hour))
	states, _ := mails.Cancel(ctx, "remind:ann")
	fmt.Printf("%q %q %q\n", id, again, states)
	// Output: "remind:ann" "" ["delayed"]
}

func ExampleWorker() {
	mails, done := example("mails")
	defer done()
	ctx, stop := context.WithCancel(context.Background())

	worker := dq.Worker{Queue: mails, Concurrency: 8, Handler: func(ctx context.Context, m *dq.Message) error {
		fmt.Println("to", string(m.Payload))
		stop() // here, so that the example ends
		return nil
	}}
	_, _ = mails.Send(ctx, []byte("ann"), dq.Delay(10*time.Millisecond))
	fmt.Println(worker.Run(ctx))
	// Output:
	// to ann
	// <nil>
}

func ExampleMessage_Effects() {
	payments, done := example("paid-once")
	defer done()
	cli := redigo.Dial(url)
	defer cli.Close()
	ctx, stop := context.WithCancel(context.Background())

	worker := dq.Worker{Queue: payments, Handler: func(ctx context.Context, m *dq.Message) error {
		m.Effects().IncrBy("paid:ann", 500).IfMissing("blocked:ann")
		stop() // here, so that the example ends
		return nil
	}}
	_, _ = cli.Do("DEL", "paid:ann")
	_, _ = payments.Send(ctx, []byte("ann"))
	_ = worker.Run(ctx)
	paid, _ := cli.Do("GET", "paid:ann")
	fmt.Printf("%s\n", paid)
	// Output: 500
}

func ExampleJSON() {
	orders, done := example("orders")
	defer done()
	ctx, stop := context.WithCancel(context.Background())

	type Order struct {
		Number int
		Total  float64
	}
	_, _ = orders.SendJSON(ctx, Order{Number: 7, Total: 9.5}, dq.Type("close"))

	var mux dq.Mux
	mux.Handle("close", dq.JSON(func(ctx context.Context, order Order, m *dq.Message) error {
		fmt.Println("closing", order.Number, "of", order.Total)
		stop()
		return nil
	}))
	worker := dq.Worker{Queue: orders, Handler: mux.Serve}
	_ = worker.Run(ctx)
	// Output: closing 7 of 9.5
}

// A queue with a manual clock has virtual time. Nothing waits, and everything falls due at the exact millisecond.
func ExampleManualClock() {
	queue, done := example("test")
	defer done()
	ctx := context.Background()

	_ = queue.Create(ctx, dq.ManualClock(time.UnixMilli(0)), dq.Backoff(dq.Fixed, 24*time.Hour))
	_, _ = queue.Send(ctx, []byte("ann"))
	first, _ := queue.Fetch(ctx)
	_, _ = queue.Nack(ctx, dq.Receipts(first...), dq.Error("busy"))
	_, _ = queue.Tick(ctx, dq.Advance(24*time.Hour))
	second, _ := queue.Fetch(ctx)
	fmt.Println(second[0].Attempt)
	// Output: 2
}

func ExampleFamily() {
	cli := redigo.Dial(url)
	defer cli.Close()
	family, err := dq.NewFamily(cli, "events", 4)
	fmt.Println(family.Route("customer-42"), err)
	_, err = dq.NewFamily(cli, "events", 5)
	fmt.Println(err)
	// Output:
	// events:{2} <nil>
	// dq: a family has a power of two from 1 to 16384 partitions, not 5
}

func ExampleServerError() {
	queue, done := example("small")
	defer done()
	ctx := context.Background()

	_ = queue.Create(ctx, dq.MaxLen(1))
	_, _ = queue.Send(ctx, []byte("1"))
	_, err := queue.Send(ctx, []byte("2"))
	fmt.Println(errors.Is(err, dq.ErrQueueFull), dq.IsTransient(err))
	// Output: true false
}
