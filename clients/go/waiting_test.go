package dq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"dq"
)

func TestAContextEndsAWait(t *testing.T) {
	q := newQueue(t)
	for i := 0; i < 3; i++ {
		waiting, end := context.WithTimeout(ctx, 30*time.Millisecond)
		_, err := q.Fetch(waiting, dq.Block(0))
		equal(t, "fetch", errors.Is(err, context.DeadlineExceeded), true)
		end()
	}
	send(t, q, "x", dq.ID("a"), dq.Delay(time.Hour))
	waiting, end := context.WithTimeout(ctx, 30*time.Millisecond)
	defer end()
	_, err := q.Wait(waiting, "a", time.Hour)
	equal(t, "wait", errors.Is(err, context.DeadlineExceeded), true)
	equal(t, "waiting", infoOf(t, q, "blocked-clients"), int64(0))
}

func TestWithoutBlockingCliAWaitEndsWithItsBlock(t *testing.T) {
	q := queueOver(t, onlyDo{connect(t)})
	waiting, end := context.WithTimeout(ctx, time.Millisecond)
	defer end()
	_, err := q.Fetch(waiting, dq.Block(50*time.Millisecond))
	equal(t, "fetch", errors.Is(err, context.DeadlineExceeded), true)
}

func TestAnUnblockEndsNoLaterWait(t *testing.T) {
	waiting, end := context.WithCancel(ctx)
	begun, unblocked := make(chan bool), make(chan bool, 1)
	_, err := dq.Unblocking(waiting, func() (interface{}, error) {
		end()
		<-begun
		return nil, nil
	}, func() error {
		close(begun)
		time.Sleep(20 * time.Millisecond)
		unblocked <- true
		return errors.New("enough")
	})
	must(t, err)
	equal(t, "it has ended", len(unblocked), 1)
}

func TestAnEndedWaitLosesNoMessage(t *testing.T) {
	q := newQueue(t)
	const all = 300
	go func() {
		for i := 0; i < all; i++ {
			_, _ = q.Send(ctx, []byte("x"))
			time.Sleep(100 * time.Microsecond)
		}
	}()
	seen := 0
	waitFor(t, "all messages", func() bool {
		waiting, end := context.WithTimeout(ctx, 300*time.Microsecond)
		defer end()
		messages, err := q.Fetch(waiting, dq.Block(time.Minute))
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		for _, m := range messages {
			equal(t, "attempt", m.Attempt, 1)
			_, err := q.Ack(ctx, dq.Receipts(m))
			must(t, err)
			seen++
		}
		return seen == all
	})
	equal(t, "left", infoOf(t, q, "running"), int64(0))
}

func TestATokenGivesTheSameMessagesAgain(t *testing.T) {
	q := newQueue(t)
	send(t, q, "1")
	send(t, q, "2")
	first := fetch(t, q, dq.Consumer("me"), dq.Token("t1"))[0]
	again := fetch(t, q, dq.Consumer("me"), dq.Token("t1"))[0]
	equal(t, "receipt", again.Receipt, first.Receipt)
	equal(t, "no ack", len(fetch(t, q, dq.NoAck())), 1)
}
