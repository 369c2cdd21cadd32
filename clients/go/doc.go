// Package dq is a thin client and worker for dq, the durable, ordered delay queue in Redis and Valkey.
//
// The server does the work of a queue. This package writes its commands, reads its replies, and runs the loop of a
// worker. It works over any Redis client: see [RedisCli], and the packages redigo and goredis for two that are ready.
//
//	cli, err := redigo.Dial("redis://localhost")
//	mails := dq.NewQueue(cli, "mails")
//	mails.Send(ctx, []byte("welcome ann"), dq.Delay(time.Hour))
//
//	worker := dq.Worker{Queue: mails, Concurrency: 8, Handler: func(ctx context.Context, m *dq.Message) error {
//		return welcome(ctx, m.Payload) // an error: tried again after the backoff of the queue
//	}}
//	err = worker.Run(ctx) // until ctx is done
//
// Delivery is at least once: a message comes again if its worker dies after the work and before the ack. Make handlers
// idempotent, or compare [Message.Receipt], which is a fencing token.
package dq
