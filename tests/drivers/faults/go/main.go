// A worker of clients/go, over redigo.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"dq"
	"dq/redigo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log, err := os.OpenFile(os.Getenv("FAULTS_LOG"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	lease, err := strconv.Atoi(os.Getenv("FAULTS_LEASE"))
	if err != nil {
		panic(err)
	}
	worker := dq.Worker{
		Queue:       dq.NewQueue(redigo.Dial(os.Getenv("FAULTS_URL")), "work"),
		Lease:       time.Duration(lease) * time.Millisecond,
		Grace:       3 * time.Second,
		Concurrency: 2,
		Handler: func(_ context.Context, m *dq.Message) error {
			var content [2]interface{}
			if err := m.JSON(&content); err != nil {
				return err
			}
			fmt.Fprintln(log, "begin", content[0])
			time.Sleep(time.Duration(content[1].(float64) * float64(time.Second)))
			fmt.Fprintln(log, "end", content[0])
			return nil
		},
	}
	if err := worker.Run(ctx); err != nil {
		panic(err)
	}
}
