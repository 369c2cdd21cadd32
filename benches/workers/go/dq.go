package main

import (
	"context"
	"time"

	"dq"
	"dq/redigo"
)

// worker is package dq over redigo.
func worker(sends bool) {
	ctx := context.Background()
	queue := dq.NewQueue(redigo.Dial("redis://"+address), "jobs")
	if sends {
		send(func(payload string, delay time.Duration) error {
			_, err := queue.Send(ctx, []byte(payload), dq.Delay(delay))
			return err
		})
		return
	}
	worker := dq.Worker{Queue: queue, Concurrency: concurrency, Handler: func(_ context.Context, m *dq.Message) error {
		handle(m.Payload)
		return nil
	}}
	check(worker.Run(ctx))
}
