package dq_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dq"
)

type step struct {
	Do    []interface{}
	Reply interface{}
	Error *string
	Work  int
	Grace *int
	Types []string
	// Apply is the call that settles a message by hand, with effects.
	Apply, Receipt string
	Next           []string
	Effects        []interface{}
	Returns        interface{}
	Applied        interface{}
	// Durable has the steps of a queue whose commands nobody confirms.
	Durable []string
}

var name = regexp.MustCompile(`<(\w+)>`)

// The cases for clients in all languages, which docs/clients.md explains, over each protocol.
func TestConformance(t *testing.T) {
	content, err := os.ReadFile("../../tests/conformance/cases.json")
	must(t, err)
	var file struct {
		Cases []struct {
			Name  string
			Steps []step
		}
	}
	must(t, json.Unmarshal(content, &file))
	for protocol, cli := range map[string]dq.RedisCli{"RESP2": connect(t), "RESP3": resp3(url)} {
		for i, one := range file.Cases {
			// A case makes other keys too, so it needs a name that no other run has.
			key, steps := fmt.Sprint("case:", protocol, ":", i, ":", time.Now().UnixNano()), one.Steps
			t.Run(protocol+"/"+one.Name, func(t *testing.T) { runCase(t, cli, key, steps) })
		}
	}
}

func runCase(t *testing.T, cli dq.RedisCli, key string, steps []step) {
	known := map[string]string{"key": key}
	for _, one := range steps {
		if one.Durable != nil {
			durably(t, dq.NewQueue(connect(t), key), known, one.Durable)
			continue
		}
		if one.Apply != "" {
			apply(t, dq.NewQueue(cli, key), known, one)
			continue
		}
		if one.Do == nil {
			work(t, dq.NewQueue(cli, key), one)
			continue
		}
		words := make([]interface{}, len(one.Do))
		for i, word := range one.Do {
			words[i] = filled(text(word), known)
		}
		reply, err := cli.Do(words...)
		if err != nil {
			if one.Error == nil || !strings.HasPrefix(err.Error(), *one.Error) {
				t.Fatalf("%v: %v", words, err)
			}
		} else if one.Error != nil || !matches(one.Reply, reply, known) {
			t.Fatalf("%v: %v, not %v", words, reply, one)
		}
	}
}

func filled(text string, known map[string]string) string {
	return name.ReplaceAllStringFunc(text, func(found string) string { return known[found[1:len(found)-1]] })
}

// durably sends or acks by a queue whose commands nobody confirms: the server has no replica.
func durably(t *testing.T, q *dq.Queue, known map[string]string, words []string) {
	q.Durable, q.Patience = &dq.Durable{Replicas: 9, InMemory: true, Timeout: 10 * time.Millisecond}, 0
	if words[0] == "send" {
		_, err := q.Send(ctx, []byte(words[1]), dq.ID(words[2]))
		equal(t, "id", unconfirmed(t, err).ID, words[2])
		return
	}
	receipt, err := strconv.ParseInt(known[strings.Trim(words[1], "<>")], 10, 64)
	must(t, err)
	_, err = q.Ack(ctx, []int64{receipt})
	unconfirmed(t, err)
}

// work runs a worker until it has got the expected number of messages.
func work(t *testing.T, q *dq.Queue, one step) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	worker := dq.Worker{Queue: q, Block: 100 * time.Millisecond}
	if one.Grace != nil {
		worker.Grace = time.Duration(*one.Grace)*time.Millisecond + 1
	}
	got := 0
	handler := func(handling context.Context, m *dq.Message) error {
		if got++; got == one.Work {
			stop()
		}
		var payload []interface{}
		must(t, m.JSON(&payload))
		if payload[0] == "apply" {
			collect(m.Effects(), payload[1].([]interface{}), nil)
			payload = payload[2:]
		}
		return outcome(t, handling, m, payload)
	}
	mux := dq.Mux{}
	for _, label := range one.Types {
		mux.Handle(label, handler)
	}
	if len(one.Types) == 0 {
		mux.Otherwise = handler
	}
	worker.Handler = mux.Serve
	must(t, worker.Run(running))
}

// outcome returns the result of a handler for a payload.
func outcome(t *testing.T, handling context.Context, m *dq.Message, payload []interface{}) error {
	words := func(i int) string {
		word, _ := payload[i].(string)
		return word
	}
	span := func(i int) time.Duration {
		ms, _ := payload[i].(float64)
		return time.Duration(ms) * time.Millisecond
	}
	switch payload[0] {
	case "return":
		if len(payload) > 1 {
			m.SetResult(words(1))
		}
		return nil
	case "fail":
		return errors.New(words(1))
	case "retry":
		return dq.Retry{Err: errors.New(words(1)), After: span(2)}
	case "reject":
		return dq.Reject{Err: errors.New(words(1))}
	case "snooze":
		return dq.Snooze{For: span(1)}
	case "follow":
		m.Follow(dq.Next{Payload: []byte(words(2)), Options: []dq.SendOption{dq.ID(words(1))}})
		return nil
	case "signal":
		m.Follow(dq.Signal{ID: words(1), Data: words(2)})
		return nil
	case "park":
		if m.Signal == nil {
			return dq.Park{For: span(2), Note: words(1)}
		}
		m.SetResult(*m.Signal)
		return nil
	case "note":
		if m.Note == "" {
			must(t, m.SetNote(words(1)))
			return errors.New(words(1))
		}
		m.SetResult(m.Note)
		return nil
	case "cancel":
		_, err := m.Queue.Cancel(ctx, m.ID)
		return err
	case "cost":
		m.SetCost(int(payload[1].(float64)))
		return nil
	}
	<-handling.Done()
	return handling.Err()
}

// matches reports whether a reply is the one that a step expects. RESP2 has no maps, doubles and booleans of its own.
func matches(expected, reply interface{}, known map[string]string) bool {
	switch want := expected.(type) {
	case nil:
		return reply == nil
	case string:
		if found := name.FindString(want); found == want && want != "" {
			label := want[1 : len(want)-1]
			if _, isKnown := known[label]; !isKnown && label != "any" {
				known[label] = text(reply)
			}
			return reply != nil && (label == "any" || known[label] == text(reply))
		}
		return reply != nil && text(reply) == filled(want, known)
	case bool:
		return reply == want || reply == map[bool]int64{true: 1, false: 0}[want]
	case float64:
		got, err := strconv.ParseFloat(text(reply), 64)
		return reply != nil && err == nil && got == want
	case []interface{}:
		got, _ := reply.([]interface{})
		for i := range got {
			if i >= len(want) || !matches(want[i], got[i], known) {
				return false
			}
		}
		return len(got) == len(want)
	}
	given, isMap := reply.(map[interface{}]interface{})
	if !isMap {
		given = map[interface{}]interface{}{}
		flat, _ := reply.([]interface{})
		for i := 0; i+1 < len(flat); i += 2 {
			given[text(flat[i])] = flat[i+1]
		}
	}
	for field, want := range expected.(map[string]interface{}) {
		if got, there := given[field]; !there || !matches(want, got, known) {
			return false
		}
	}
	return true
}

func text(value interface{}) string {
	switch v := value.(type) {
	case []byte:
		return string(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// resp3 is a client that speaks RESP3 and has only Do. It converts replies as go-redis does, without go-redis. Each
// command has a connection of its own.
type resp3 string

func (address resp3) Do(args ...interface{}) (interface{}, error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(string(address), "redis://"))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	command := fmt.Sprintf("*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*%d\r\n", len(args))
	for _, one := range args {
		command += fmt.Sprintf("$%d\r\n%s\r\n", len(one.(string)), one)
	}
	if _, err := io.WriteString(conn, command); err != nil {
		return nil, err
	}
	from := bufio.NewReader(conn)
	if _, err := readReply(from); err != nil {
		return nil, err
	}
	return readReply(from)
}

func readReply(from *bufio.Reader) (interface{}, error) {
	line, err := from.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], strings.TrimSuffix(line[1:], "\r\n")
	switch kind {
	case '-':
		return nil, errors.New(rest)
	case '+':
		return rest, nil
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case ',':
		return strconv.ParseFloat(rest, 64)
	case '#':
		return rest == "t", nil
	case '_':
		return nil, nil
	case '(':
		whole, _ := new(big.Int).SetString(rest, 10)
		return whole, nil
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		return nil, err
	}
	switch kind {
	case '$':
		content := make([]byte, n+2)
		_, err := io.ReadFull(from, content)
		return string(content[:n]), err
	case '*':
		return readReplies(from, n)
	case '%':
		flat, err := readReplies(from, 2*n)
		pairs := map[interface{}]interface{}{}
		for i := 0; i+1 < len(flat); i += 2 {
			pairs[flat[i]] = flat[i+1]
		}
		return pairs, err
	}
	return nil, fmt.Errorf("an unknown reply: %q", line)
}

func readReplies(from *bufio.Reader, n int) ([]interface{}, error) {
	replies := make([]interface{}, n)
	for i := range replies {
		var err error
		if replies[i], err = readReply(from); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

func TestRepliesOfRESP3(t *testing.T) {
	q := queueOver(t, resp3(url), dq.ManualClock(time.UnixMilli(0)), dq.Retain(time.Hour))
	_, err := resp3(url).Do("DQ.SEND", t.Name(), "large", "GROUP", "large", "SCORE", "18446744073709551615")
	must(t, err)
	large := fetch(t, q)
	equal(t, "a score beyond 63 bits", *large[0].Score, 18446744073709551615.)
	_, err = q.Ack(ctx, dq.Receipts(large...))
	must(t, err)
	send(t, q, "x", dq.ID("a"), dq.Group("g"), dq.Score(1.5), dq.Headers(map[string]string{"k": "v"}))
	m := fetch(t, q)[0]
	equal(t, "score", *m.Score, 1.5)
	equal(t, "header", m.Headers["k"], "v")
	acked, err := q.Ack(ctx, dq.Receipts(m), dq.Result("fine"))
	must(t, err)
	equal(t, "acked", acked, 1)
	equal(t, "result", *get(t, q, "a").Result, "fine")
	info, err := q.Info(ctx)
	must(t, err)
	equal(t, "paused", info.Text("paused"), "0")
	equal(t, "finished", info.Int("finished"), int64(2))

	send(t, q, "y")
	var handled int32
	stop := running(t, &dq.Worker{Queue: q, Block: 50 * time.Millisecond, Handler: func(context.Context, *dq.Message) error {
		atomic.AddInt32(&handled, 1)
		return nil
	}})
	emptied(t, q)
	must(t, stop())
	equal(t, "handled", handled, 1)
}

func TestRoutingExamples(t *testing.T) {
	content, err := os.ReadFile("../../tests/conformance/routing.json")
	must(t, err)
	var examples struct {
		Tags   map[string][]int
		Routes []struct {
			Family, Queue string
			Group         *string
			Partitions    int
		}
	}
	must(t, json.Unmarshal(content, &examples))
	cli := connect(t)
	for partitions, tags := range examples.Tags {
		n, _ := strconv.Atoi(partitions)
		f, err := dq.NewFamily(cli, "f", n)
		must(t, err)
		for i, key := range f.Keys() {
			equal(t, "key", key, fmt.Sprintf("f:{%d}", tags[i]))
		}
	}
	equal(t, "there are examples", len(examples.Tags) > 5 && len(examples.Routes) > 5, true)
	for _, one := range examples.Routes {
		if one.Group == nil {
			continue
		}
		f, err := dq.NewFamily(cli, one.Family, one.Partitions)
		must(t, err)
		equal(t, "queue", f.Route(*one.Group), one.Queue)
	}
}
