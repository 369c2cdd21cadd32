package dq_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"dq"
)

// BenchmarkLoop is the ceiling of a worker with one handler: a loop that only fetches and acks.
func BenchmarkLoop(b *testing.B) {
	q := full(b)
	b.ResetTimer()
	var acked []int64
	for i := 0; i < b.N; i++ {
		acked = dq.Receipts(fetch(b, q, dq.Acking(acked...))...)
	}
}

// BenchmarkWorker measures a worker with an empty handler.
func BenchmarkWorker(b *testing.B) {
	for _, concurrency := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(concurrency), func(b *testing.B) {
			q := full(b)
			running, stop := context.WithCancel(ctx)
			var handled int64
			worker := dq.Worker{Queue: q, Concurrency: concurrency, Handler: func(context.Context, *dq.Message) error {
				if atomic.AddInt64(&handled, 1) == int64(b.N) {
					stop()
				}
				return nil
			}}
			b.ResetTimer()
			must(b, worker.Run(running))
		})
	}
}

// full returns a queue with a message for each step of a benchmark.
func full(b *testing.B) *dq.Queue {
	q := newQueue(b)
	for left := b.N; left > 0; left -= 1000 {
		n := left
		if n > 1000 {
			n = 1000
		}
		_, err := q.SendMany(ctx, make([][]byte, n))
		must(b, err)
	}
	return q
}
