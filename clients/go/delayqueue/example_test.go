package delayqueue_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"dq/delayqueue"
	"dq/redigo"
)

var ctx = context.Background()

func Example() {
	cli := redigo.Dial(url)
	defer cli.Close()
	if _, err := cli.Do("DEL", "dp:example"); err != nil {
		log.Fatal(err)
	}

	var queue *delayqueue.DelayQueue
	queue = delayqueue.NewQueue0("example", cli, func(payload string) bool {
		fmt.Println(payload)
		queue.StopConsume() // here, so that the example ends
		return true         // false: deliver it again
	}).WithConcurrent(4)

	if err := queue.SendDelayMsg("hello", 20*time.Millisecond, delayqueue.WithRetryCount(3)); err != nil {
		log.Fatal(err)
	}
	<-queue.StartConsume()
	// Output: hello
}
