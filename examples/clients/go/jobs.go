// A producer and a worker with go-redis; ../README.md says what they show.
//
//	apt install golang-go golang-gopkg-redis.v5-dev
//	GO111MODULE=off GOPATH=/usr/share/gocode go build -o /tmp/jobs jobs.go
//	/tmp/jobs send redis://127.0.0.1:6379 orders 100
//	/tmp/jobs work redis://127.0.0.1:6379 orders
//
// This is the go-redis that Debian packages. With github.com/redis/go-redis/v9 only the function call changes: its body
// is `return client.Do(ctx, words...).Result()`, and Options.Protocol chooses between RESP2 and RESP3.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	redis "gopkg.in/redis.v5"
)

const (
	block       = 2 * time.Second
	readTimeout = 5 * time.Second // longer than block
)

var (
	lease    = leaseTime()
	stopping = make(chan struct{})

	errGivenBack = errors.New("the worker is to stop before the work is finished")
)

// Server makes lost connections anew; it is safe for use by several goroutines.
type Server struct{ client *redis.Client }

func call(client *redis.Client, words ...interface{}) (interface{}, error) {
	command := redis.NewCmd(words...)
	if err := client.Process(command); err != nil {
		return nil, err
	}
	return command.Result()
}

// Call sends one command; a null reply is nil.
func (s Server) Call(words ...interface{}) (interface{}, error) {
	reply, err := call(s.client, words...)
	if err == redis.Nil {
		return nil, nil
	}
	return reply, err
}

// Insist repeats a command until it is answered. All commands here may be: see ../README.md.
func (s Server) Insist(words ...interface{}) (interface{}, error) {
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		reply, err := s.Call(words...)
		if err == nil || isReply(err) || isStopping() {
			return reply, err
		}
		fmt.Println("trying again:", err)
		if pause > time.Second {
			pause = time.Second
		}
		time.Sleep(pause)
	}
}

// isReply tells an error reply of the server, which repeating would not help, from a lost connection.
func isReply(err error) bool {
	word := strings.SplitN(err.Error(), " ", 2)[0]
	return word != "LOADING" && word != "EOF" && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

func isStopping() bool {
	select {
	case <-stopping:
		return true
	default:
		return false
	}
}

func leaseTime() time.Duration {
	if ms, err := strconv.Atoi(os.Getenv("LEASE_MS")); err == nil {
		return time.Duration(ms) * time.Millisecond
	}
	return 30 * time.Second
}

func ms(span time.Duration) int64 { return int64(span / time.Millisecond) }

// Job is what a message asks for.
type Job struct {
	Order  string `json:"order"`
	WorkMs int    `json:"work_ms"`
	Broken bool   `json:"broken,omitempty"`
}

// ---- producer -------------------------------------------------------------------------------------------------------

func send(server Server, queue string, count, workMs int) error {
	_, err := server.Insist("DQ.CREATE", queue, "DEDUP", 60000)
	if err != nil && !strings.Contains(err.Error(), "queue already exists") {
		return err
	}
	for n := 0; n < count; n++ {
		job := Job{Order: fmt.Sprintf("order-%d", n), WorkMs: workMs}
		payload, err := json.Marshal(job)
		if err != nil {
			return err
		}
		id := "close:" + job.Order
		added, err := server.Insist("DQ.SEND", queue, payload, "ID", id)
		if err != nil {
			return err
		}
		if added == nil {
			fmt.Println("already there", id)
		} else {
			fmt.Println("sent", id)
		}
	}
	return nil
}

// ---- worker ---------------------------------------------------------------------------------------------------------

// Held is what the worker has not finished: the ids by receipt.
type Held struct {
	sync.Mutex
	ids map[int64]string
}

func (h *Held) add(receipt int64, id string) {
	h.Lock()
	defer h.Unlock()
	h.ids[receipt] = id
}

func (h *Held) remove(receipt int64) {
	h.Lock()
	defer h.Unlock()
	delete(h.ids, receipt)
}

func (h *Held) receipts() (receipts []interface{}, ids []interface{}) {
	h.Lock()
	defer h.Unlock()
	for receipt, id := range h.ids {
		receipts = append(receipts, receipt)
		ids = append(ids, id)
	}
	return receipts, ids
}

// words puts the parts of a command together.
func words(first []interface{}, rest ...interface{}) []interface{} {
	return append(append([]interface{}{}, first...), rest...)
}

// beat keeps the leases of what is held.
func beat(server Server, queue string, held *Held, ended <-chan struct{}) {
	ticker := time.NewTicker(lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
			receipts, _ := held.receipts()
			if len(receipts) == 0 {
				continue
			}
			touch := words([]interface{}{"DQ.TOUCH", queue, ms(lease)}, receipts...)
			if _, err := server.Call(touch...); err != nil {
				fmt.Println("no heartbeat:", err) // the next one may come in time
			}
		}
	}
}

// closeOrder is the work, which a stop ends; false if somebody with a newer receipt did it before.
func closeOrder(server Server, queue string, payload string, receipt int64) (bool, error) {
	var job Job
	if err := json.Unmarshal([]byte(payload), &job); err != nil {
		return false, err
	}
	if job.Broken {
		return false, errors.New("this order cannot be closed")
	}
	select {
	case <-stopping:
		return false, errGivenBack
	case <-time.After(time.Duration(job.WorkMs) * time.Millisecond):
	}
	changed, err := server.Call("ZADD", queue+":closed", "GT", "CH", receipt, job.Order)
	return changed == int64(1), err
}

func work(server Server, queue string) error {
	host, _ := os.Hostname()
	consumer := fmt.Sprintf("%s:%d", host, os.Getpid())
	held := &Held{ids: map[int64]string{}}
	ended := make(chan struct{})
	go beat(server, queue, held, ended)
	var done []interface{}
	for !isStopping() {
		fetch := []interface{}{"DQ.FETCH", queue, "COUNT", 5, "BLOCK", ms(block), "LEASE", ms(lease), "CONSUMER", consumer}
		if len(done) > 0 {
			fetch = words(append(fetch, "ACK", len(done)), done...)
		}
		reply, err := server.Insist(fetch...)
		if err != nil && isReply(err) {
			return err
		} else if err != nil {
			break
		}
		done = nil
		batch := reply.([]interface{})
		for _, one := range batch {
			message := one.([]interface{})
			held.add(message[1].(int64), message[0].(string))
		}
		for _, one := range batch {
			message := one.([]interface{})
			id, receipt, attempt := message[0].(string), message[1].(int64), message[2].(int64)
			closed, err := closeOrder(server, queue, message[3].(string), receipt)
			if err == errGivenBack {
				break // still held: given back below
			} else if err != nil {
				if _, err := server.Insist("DQ.NACK", queue, receipt, "ERROR", err.Error()); err != nil {
					return err
				}
				fmt.Println("failed", id, "attempt", attempt)
			} else {
				done = append(done, receipt)
				word := "fenced"
				if closed {
					word = "done"
				}
				fmt.Println(word, id, "attempt", attempt)
			}
			held.remove(receipt)
		}
	}
	close(ended)
	if len(done) > 0 {
		if _, err := server.Call(words([]interface{}{"DQ.ACK", queue}, done...)...); err != nil {
			return err
		}
	}
	if receipts, ids := held.receipts(); len(receipts) > 0 {
		nack := append(words([]interface{}{"DQ.NACK", queue}, receipts...), "SILENT")
		if _, err := server.Call(nack...); err != nil {
			return err
		}
		fmt.Println(words([]interface{}{"gave back"}, ids...)...)
	}
	return nil
}

func number(index, otherwise int) int {
	if len(os.Args) <= index {
		return otherwise
	}
	value, err := strconv.Atoi(os.Args[index])
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	if len(os.Args) < 4 {
		log.Fatal("usage: jobs send URL QUEUE COUNT [WORK-MS] | jobs work URL QUEUE")
	}
	options, err := redis.ParseURL(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	options.ReadTimeout = readTimeout
	server := Server{redis.NewClient(options)}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-signals
		close(stopping)
	}()
	if os.Args[1] == "send" {
		err = send(server, os.Args[3], number(4, 100), number(5, 20))
	} else {
		err = work(server, os.Args[3])
	}
	if err != nil {
		log.Fatal(err)
	}
}
