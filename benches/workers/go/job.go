package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The work that every worker here does with a job, and the way in which every producer sends jobs. See python/job.py.

var (
	address     = "127.0.0.1:" + os.Getenv("BENCH_PORT")
	concurrency = setting("CONCURRENCY", 1)
	pause       = time.Duration(setting("SLEEP_MS", 0)) * time.Millisecond
	first       = int64(setting("FIRST", 1))
	last        = int64(setting("LAST", 0))
	stamped     = setting("STAMPED", 0) == 1

	arrivals int64
	mutex    sync.Mutex
	late     []string
)

func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv("BENCH_" + name)); err == nil {
		return n
	}
	return otherwise
}

// handle is the handler of a job.
func handle(payload []byte) {
	arrived(payload)
	if pause > 0 {
		time.Sleep(pause)
	}
}

func arrived(payload []byte) {
	if stamped {
		due, err := strconv.ParseInt(string(payload), 10, 64)
		check(err)
		mutex.Lock()
		late = append(late, strconv.FormatInt(time.Now().UnixMicro()-due, 10))
		mutex.Unlock()
	}
	switch atomic.AddInt64(&arrivals, 1) {
	case first:
		tell("first")
	case last:
		mutex.Lock()
		defer mutex.Unlock()
		tell("last " + strings.Join(late, " "))
	}
}

// send calls a function for each job that is to be sent.
func send(one func(payload string, delay time.Duration) error) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		ms, err := strconv.ParseInt(words[0], 10, 64)
		check(err)
		payload := words[1]
		if payload == "@" {
			payload = strconv.FormatInt(time.Now().UnixMicro()+ms*1000, 10)
		}
		check(one(payload, time.Duration(ms)*time.Millisecond))
	}
	tell("sent")
}

func tell(line string) { fmt.Println(line) }

func check(err error) {
	if err != nil {
		panic(err)
	}
}
