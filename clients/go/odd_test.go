package dq_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	neturl "net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"dq"
	"dq/redigo"
)

// loud is an error that panics when it is looked at, like an error that is a nil pointer.
type loud struct{ text string }

func (e *loud) Error() string { return e.text }

// stubborn is an error that panics when its kind is asked.
type stubborn struct{}

func (stubborn) Error() string          { return "stubborn" }
func (stubborn) As(interface{}) bool    { panic("no") }
func (stubborn) Format(fmt.State, rune) { panic("no") }

func TestHoweverAHandlerEndsItsMessageFailsAndTheNextOneRuns(t *testing.T) {
	ends := []struct {
		name, reason, err string
		end               func() error
	}{
		{"a panic", "retries", "panic: why", func() error { panic("why") }},
		{"a panic with nil", "retries", "panic", func() error { panic(nil) }},
		{"a panic with an error", "retries", "panic: why", func() error { panic(errors.New("why")) }},
		{"a panic with a Reject", "rejected", "panic: why", func() error { panic(dq.Reject{Err: errors.New("why")}) }},
		{"a panic of the runtime", "retries", "panic: runtime error: index out of range", func() error {
			return []error{}[len(os.Args)-len(os.Args)]
		}},
		{"the end of the goroutine", "retries", "runtime.Goexit", func() error { runtime.Goexit(); return nil }},
		{"the end of a test", "retries", "runtime.Goexit", func() error { (&testing.T{}).SkipNow(); return nil }},
		{"a nil pointer", "retries", "*dq_test.loud", func() error { return (*loud)(nil) }},
		{"an error that panics", "retries", "dq_test.stubborn", func() error { return stubborn{} }},
		{"a panic with such an error", "retries", "panic", func() error { panic(stubborn{}) }},
		{"a negative delay", "retries", "later", func() error { return dq.Retry{Err: errors.New("later"), After: -time.Second} }},
	}
	q := newQueue(t, dq.Retries(0))
	byID := map[string]func() error{"next": func() error { return nil }}
	for _, one := range ends {
		byID[one.name] = one.end
		send(t, q, "x", dq.ID(one.name))
	}
	send(t, q, "x", dq.ID("next"))
	stop := running(t, &dq.Worker{Queue: q, Handler: func(_ context.Context, m *dq.Message) error { return byID[m.ID]() }})
	emptied(t, q)
	must(t, stop())
	for _, one := range ends {
		record := get(t, q, one.name)
		equal(t, one.name, record.Reason, one.reason)
		equal(t, one.name+": "+record.Error, strings.Contains(record.Error, one.err), true)
	}
}

// kill is the part of this program that runs as a separate process in
// TestAMessageThatKillsItsWorkersIsGivenUpAfterThree.
func kill(key string) {
	worker := dq.Worker{
		Queue:   dq.NewQueue(redigo.Dial(url), key),
		Lease:   100 * time.Millisecond,
		Handler: func(_ context.Context, m *dq.Message) error { os.Exit(40 + m.Attempt); return nil },
	}
	_ = worker.Run(ctx)
}

func TestAMessageThatKillsItsWorkersIsGivenUpAfterThree(t *testing.T) {
	for _, retries := range []int{-1, 2} {
		q := newQueue(t, dq.Retries(retries))
		send(t, q, "x", dq.ID("killer"))
		for n := 1; n <= 3; n++ {
			program := exec.Command(os.Args[0])
			program.Env = append(os.Environ(), "DQ_TEST_KILL="+t.Name())
			err := program.Run()
			equal(t, fmt.Sprint("exit code: ", err), program.ProcessState.ExitCode(), 40+n)
			waitFor(t, "the end of the lease", func() bool { return get(t, q, "killer").Timeouts == n })
		}
		send(t, q, "x", dq.ID("next"))
		handled := make(chan string, 9)
		stop := running(t, &dq.Worker{Queue: q, Handler: func(_ context.Context, m *dq.Message) error {
			handled <- m.ID
			return nil
		}})
		emptied(t, q)
		must(t, stop())
		equal(t, "handled", len(handled), 1)
		equal(t, "handled", <-handled, "next")
		equal(t, "state", get(t, q, "killer").State, dq.Dead)
		if retries == -1 {
			equal(t, "error", get(t, q, "killer").Error, "given up: 3 workers were lost with it")
		}
	}
}

func TestAMessageThatOnlyFailsIsNotGivenUp(t *testing.T) {
	q := newQueue(t, dq.Retries(-1), dq.Backoff(dq.Fixed, 0))
	send(t, q, "x")
	attempts := make(chan int, 100)
	stop := running(t, &dq.Worker{Queue: q, Handler: func(_ context.Context, m *dq.Message) error {
		attempts <- m.Attempt
		if m.Attempt < 8 {
			return errors.New("again")
		}
		return nil
	}})
	emptied(t, q)
	must(t, stop())
	equal(t, "attempts", len(attempts), 8)
}

// refusing is a client whose server refuses this result.
type refusing struct{ dq.RedisCli }

func (c refusing) Do(args ...interface{}) (interface{}, error) {
	for _, one := range args {
		if one == "long" {
			return nil, errors.New("ERR no such result")
		}
	}
	return c.RedisCli.Do(args...)
}

func TestAResultThatTheServerRefusesMakesItsMessageDeadAlone(t *testing.T) {
	q := queueOver(t, refusing{connect(t)}, dq.Retain(time.Hour))
	results := map[string]string{"a": "long", "b": "right", "c": "long", "d": "right"}
	for _, id := range []string{"a", "b", "c", "d"} {
		send(t, q, "x", dq.ID(id))
	}
	var together sync.WaitGroup
	together.Add(2)
	stop := running(t, &dq.Worker{Queue: q, Block: 50 * time.Millisecond, Handler: func(_ context.Context, m *dq.Message) error {
		switch m.ID {
		case "a", "b":
			// One fetch acks both.
			together.Done()
			together.Wait()
		case "c":
			// A fetch waits meanwhile, so this message is acked by a command of its own.
			time.Sleep(100 * time.Millisecond)
		}
		m.SetResult(results[m.ID])
		return nil
	}, Concurrency: 2})
	emptied(t, q)
	must(t, stop())
	for id, result := range results {
		if result == "right" {
			equal(t, id, *get(t, q, id).Result, "right")
			continue
		}
		equal(t, id, get(t, q, id).Error, "the result was refused: ERR no such result")
		equal(t, id, get(t, q, id).State, dq.Dead)
	}
}

// silent is a server that accepts connections, and passes everything on until silenced is called.
func silent(t *testing.T) (address string, silence func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server, err := neturl.Parse(url)
	must(t, err)
	quiet := make(chan struct{})
	pass := func(from, to net.Conn) {
		data := make([]byte, 65536)
		for {
			n, err := from.Read(data)
			if err != nil {
				to.Close()
				return
			}
			select {
			case <-quiet:
				continue
			default:
			}
			if _, err = to.Write(data[:n]); err != nil {
				from.Close()
				return
			}
		}
	}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", server.Host)
			if err != nil {
				near.Close()
				continue
			}
			go pass(near, far)
			go pass(far, near)
		}
	}()
	t.Cleanup(func() { listener.Close() })
	return "redis://" + listener.Addr().String(), func() { close(quiet) }
}

func TestAWorkerStopsInTimeWhateverTheServerDoes(t *testing.T) {
	const grace = 500 * time.Millisecond
	for _, one := range []struct {
		name     string
		takes    time.Duration
		wrap     func(dq.RedisCli) dq.RedisCli
		workers  int
		isFamily bool
	}{
		{"a handler ends", grace / 2, func(cli dq.RedisCli) dq.RedisCli { return cli }, 1, false},
		{"a handler does not end", time.Hour, func(cli dq.RedisCli) dq.RedisCli { return cli }, 1, false},
		{"a fetch waits", grace / 2, func(cli dq.RedisCli) dq.RedisCli { return cli }, 2, false},
		{"a fetch waits that nothing can end", grace / 2, func(cli dq.RedisCli) dq.RedisCli { return onlyDo{cli} }, 2, false},
		{"a family", grace / 2, func(cli dq.RedisCli) dq.RedisCli { return cli }, 2, true},
	} {
		one := one
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			address, silence := silent(t)
			cli := one.wrap(redigo.Dial(address))
			q := queueOver(t, connect(t))
			begun, over := make(chan struct{}), make(chan struct{})
			defer close(over)
			worker := &dq.Worker{Concurrency: one.workers, Grace: grace, Handler: func(context.Context, *dq.Message) error {
				close(begun)
				select {
				case <-time.After(one.takes):
				case <-over:
				}
				return nil
			}, Logf: func(string, ...interface{}) {}}
			if one.isFamily {
				name := strings.ReplaceAll(t.Name(), "/", "-")
				family, err := dq.NewFamily(cli, name, 1)
				must(t, err)
				worker.Family = family
				direct, err := dq.NewFamily(connect(t), name, 1)
				must(t, err)
				_, err = direct.Send(ctx, []byte("x"))
				must(t, err)
			} else {
				worker.Queue = dq.NewQueue(cli, t.Name())
				send(t, q, "x")
			}
			running, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- worker.Run(running) }()
			<-begun
			time.Sleep(50 * time.Millisecond)
			silence()
			since := time.Now()
			stop()
			must(t, <-ended)
			if took := time.Since(since); took > grace+2*time.Second {
				t.Fatalf("it took %v", took)
			}
		})
	}
}
