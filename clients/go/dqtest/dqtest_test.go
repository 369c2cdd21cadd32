package dqtest_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"dq"
	"dq/dqtest"
	"dq/redigo"
)

func need(t *testing.T) {
	if os.Getenv("DQ_CLI") == "" {
		t.Skip("DQ_CLI names no program")
	}
}

func TestAServerForATestWorksAndStops(t *testing.T) {
	need(t)
	var url string
	t.Run("inner", func(t *testing.T) {
		ctx := context.Background()
		url = dqtest.Server(t)
		client := redigo.Dial(url)
		defer client.Close()
		queue := dq.NewQueue(client, "test")
		if err := queue.Create(ctx, dq.ManualClock(time.UnixMilli(0))); err != nil {
			t.Fatal(err)
		}
		if _, err := queue.Send(ctx, []byte("ann")); err != nil {
			t.Fatal(err)
		}
		messages, err := queue.Fetch(ctx)
		if err != nil || len(messages) != 1 {
			t.Fatal(messages, err)
		}
	})
	client := redigo.Dial(url)
	defer client.Close()
	if _, err := client.Do("PING"); err == nil {
		t.Fatal("the server outlives its test")
	}
}

func TestAServerThatDoesNotStartSaysWhy(t *testing.T) {
	need(t)
	_, _, err := dqtest.Start("--config", "/no/file")
	if err == nil || !strings.Contains(err.Error(), "/no/file cannot be read") {
		t.Fatal(err)
	}
}
