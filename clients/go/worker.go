package dq

import (
	"context"
	"errors"
	"log"
	"sync"
	"time"
)

// Worker handles the messages of a queue or of a family.
//
// One connection waits for messages; each FETCH takes as many as there are handlers free, and also acks what was done
// meanwhile, so at concurrency 1 a message costs one round trip. A message that is done while the FETCH waits is acked at
// once. While handlers run, a heartbeat extends their leases, all in one command.
//
// Lost connections are made anew by the client, for as long as it takes. Messages that were handled meanwhile are acked
// then. A message whose reply was lost is given to the worker once more, because each FETCH has a TOKEN.
type Worker struct {
	// Queue or Family is where the messages come from: one of them.
	Queue  *Queue
	Family *Family
	// Handler does the work. A panic with any value, and the end of its goroutine, are failures of the message.
	Handler Handler
	// Concurrency is how many messages are handled at once, 1 by default.
	Concurrency int
	// Lease is the time after a crash of this process until others get its messages, 30 seconds by default. Because of
	// the heartbeats it is not the time that a handler may take.
	Lease time.Duration
	// NoHeartbeats makes Lease the time that a handler may take. After it ctx is done and others get the message.
	NoHeartbeats bool
	// TimeLimit is the time that a handler may take. After it ctx is done and the lease is no longer extended, so the
	// message is delivered again. 0 means no limit.
	TimeLimit time.Duration
	// Block is how long one FETCH waits at the server, 2 seconds by default. It must be shorter than the read timeout of
	// the client. With a client that is no BlockingCli a stop takes that long.
	Block time.Duration
	// Grace is how long handlers may go on after a stop, 20 seconds by default. Messages that are not finished then are
	// given back as if it had not been delivered.
	Grace time.Duration
	// LostWorkers is after how many lost workers a message without limit of RETRIES is given up: 3 by default, never if it
	// is negative. Where RETRIES is a limit, the server counts lost workers as it counts other failures.
	LostWorkers int
	// Consumer is the name that the server shows: by default host and process id, and a number if other workers run in the
	// process. No two workers may share it.
	Consumer string
	// Logf gets the errors. The default is log.Printf.
	Logf func(format string, args ...interface{})
	// Observe is called after each step of a message, if it is set. It must not block.
	Observe func(step Step, m *Message)
}

// Step is the step that a Worker has taken with a message.
type Step int

// The steps. Begun is before the handler is called. Acked is when it has succeeded: the ack is on its way then. Nacked (after
// a failure) and GivenBack (without one) are when the server has replied, Lost when the lease was over before.
const (
	Begun Step = iota
	Acked
	Nacked
	GivenBack
	Lost
)

// lastWords is how long a stopping worker waits for a server that does not answer, when Grace is over or all handlers have
// ended. Run allows two seconds.
const lastWords = 1500 * time.Millisecond

// mostReceipts is how many receipts one command has at most. A FETCH with TOKEN takes no more messages, either.
const mostReceipts = 1000

// Run works until ctx is done, and returns nil then. It returns an error that will not pass (no right, a key of another
// type) after it has stopped in the same way: it fetches no more, handlers get Grace to finish, and messages that are not
// finished are given back. It may be called again.
//
// It returns within Grace and two seconds after ctx is done, also if the server is gone or silent. A message whose
// outcome did not reach the server comes back when its lease ends.
func (w *Worker) Run(ctx context.Context) error {
	if w.Handler == nil || (w.Queue == nil) == (w.Family == nil) {
		return errors.New("dq: a Worker needs a Handler, and a Queue or a Family")
	}
	r := w.start(ctx)
	if r.Consumer == "" {
		name, free := takeConsumerName()
		defer free()
		r.Consumer = name
	}
	return r.work()
}

// run is one call of Worker.Run.
type run struct {
	Worker
	// fetching ends when no more messages are to be fetched, settling when no command is to be repeated any more.
	fetching, settling         context.Context
	stopFetching, stopSettling context.CancelFunc

	leases leases
	acks   acks
	// free has an element for each message that may still be taken: the concurrency less the number of messages that are
	// being handled.
	free     chan struct{}
	handlers sync.WaitGroup

	mutex   sync.Mutex
	failure error
}

func (w *Worker) start(ctx context.Context) *run {
	r := &run{Worker: *w}
	if w.Queue != nil {
		r.Handler = through(w.Queue.Middleware, w.Handler)
	} else {
		r.Handler = through(w.Family.Middleware, w.Handler)
	}
	defaults := func(span *time.Duration, otherwise time.Duration) {
		if *span <= 0 {
			*span = otherwise
		}
	}
	defaults(&r.Lease, 30*time.Second)
	defaults(&r.Block, 2*time.Second)
	defaults(&r.Grace, 20*time.Second)
	if r.Concurrency < 1 {
		r.Concurrency = 1
	}
	if r.LostWorkers == 0 {
		r.LostWorkers = 3
	}
	if r.NoHeartbeats {
		r.TimeLimit = r.Lease
	}
	if r.Logf == nil {
		r.Logf = log.Printf
	}
	if r.Observe == nil {
		r.Observe = func(Step, *Message) {}
	}
	r.fetching, r.stopFetching = context.WithCancel(ctx)
	r.settling, r.stopSettling = context.WithCancel(context.Background())
	r.leases.running = map[*Message]*held{}
	r.acks.init()
	r.free = make(chan struct{}, r.Concurrency)
	r.release(r.Concurrency)
	return r
}

func (r *run) work() error {
	ended, acked, fetched := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go r.beat(ended)
	go func() {
		defer close(acked)
		r.ackLate()
	}()
	go func() {
		defer close(fetched)
		if r.Queue != nil {
			r.loop(r.fetching, r.Queue, r.Consumer)
		} else {
			r.overFamily()
		}
		r.acks.noMoreFetches()
	}()
	<-r.fetching.Done()

	// A client may wait for a reply for longer than the worker may. Run then leaves behind what waits.
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		r.finish(fetched)
		time.AfterFunc(lastWords, r.stopSettling)
		r.acks.close()
		<-acked
	}()
	late := time.NewTimer(r.Grace + lastWords)
	defer late.Stop()
	select {
	case <-settled:
	case <-late.C:
		r.Logf("dq: the server does not answer, so leases must end what is not settled")
	}
	close(ended)
	r.stopFetching()
	r.stopSettling()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.failure
}

// fail stops the worker with an error.
func (r *run) fail(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.failure == nil {
		r.failure = err
	}
	r.stopFetching()
}

// finish gives the handlers time to end, and gives back the messages that they have not finished. It returns when
// nothing is fetched any more, either.
func (r *run) finish(fetched <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		<-fetched
		r.handlers.Wait()
		close(done)
	}()
	timer := time.NewTimer(r.Grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		if unfinished := r.leases.takeAll(); len(unfinished) > 0 {
			r.Logf("dq: %d messages not finished in time are given back", len(unfinished))
			r.giveBack(unfinished)
		}
		<-fetched
	}
}

// source is where one loop fetches from: a queue, or a family on a node.
type source interface {
	fetch(ctx context.Context, words []string) ([]*Message, error)
	// acksToo tells whether a fetch can ack other messages of the source.
	acksToo() bool
}

// loop fetches from one source until ctx is done, if there is no other. While it waits, it has all free places.
func (r *run) loop(ctx context.Context, from source, consumer string) {
	for {
		places := r.take(ctx)
		if places == 0 {
			return
		}
		batch := r.fetch(ctx, from, consumer, places, r.Block)
		r.release(places - len(batch))
		if ctx.Err() != nil {
			r.giveBack(batch)
			return
		}
		r.begin(batch)
	}
}

// begin handles messages. Each has a place in free already.
func (r *run) begin(batch []*Message) {
	for _, m := range batch {
		m.lease = r.Lease
		handling := r.leases.add(m, r.TimeLimit)
		r.handlers.Add(1)
		go func(m *Message) {
			defer r.handlers.Done()
			defer r.release(1)
			r.handle(handling, m)
		}(m)
	}
}

// take waits for a free place, and takes all free ones. It returns 0 when ctx is done.
func (r *run) take(ctx context.Context) int {
	select {
	case <-ctx.Done():
		return 0
	case <-r.free:
	}
	// A place may become free because of the stop: messages that were given back then must not be fetched once more.
	if ctx.Err() != nil {
		r.release(1)
		return 0
	}
	return 1 + r.takeFree(mostReceipts-1)
}

// takeFree takes up to most places that are free now.
func (r *run) takeFree(most int) (taken int) {
	for ; taken < most; taken++ {
		select {
		case <-r.free:
		default:
			return taken
		}
	}
	return taken
}

func (r *run) release(places int) {
	for ; places > 0; places-- {
		r.free <- struct{}{}
	}
}

// fetch takes up to places messages, and waits for them for up to block. It repeats itself after errors that may pass, with
// the same token, until ctx is done, and then once more: what a lost reply has leased must be given back.
func (r *run) fetch(ctx context.Context, from source, consumer string, places int, block time.Duration) []*Message {
	words := []string{"COUNT", count(places), "LEASE", millis(r.Lease), "CONSUMER", consumer, "TOKEN", newToken()}
	var acking doneList
	if from.acksToo() {
		acking = r.acks.beginFetch()
		defer r.acks.endFetch()
		words = append(words, acking.words()...)
	}
	asked := time.Now()
	for tries := 0; ; tries++ {
		last := tries > 0 && ctx.Err() != nil
		all := words
		if block > 0 && !last {
			all = append([]string{"BLOCK", millis(block)}, words...)
		}
		batch, err := from.fetch(ctx, all)
		if err == nil {
			if time.Since(asked) > r.Lease/3 {
				// These may be the messages of a lost reply, whose leases end before the next beat.
				for _, messages := range byQueue(batch) {
					r.extend(messages[0].Queue, messages)
				}
			}
			return batch
		}
		if len(acking) > 0 && isRefusal(err) {
			// The acks are sent alone from here on. If the fetch without them succeeds, they were what was refused.
			for _, one := range acking {
				r.acks.addLate(one)
			}
			words, acking = words[:len(words)-len(acking.words())], nil
			continue
		}
		if last || !IsTransient(err) {
			for _, one := range acking {
				r.acks.addLate(one)
			}
			if !IsTransient(err) {
				r.fail(err)
			}
			return nil
		}
		r.Logf("dq: fetching failed, trying again: %v", err)
		sleep(ctx, pauseAfter(tries))
	}
}
