package main

import (
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

// delayqueue does what a worker of HDT3213/delayqueue does to Redis. The library itself is not to be had here, so its
// commands and scripts are written anew, from its documentation. Its keys are a string for each message, a sorted set of
// pending ids by due second, lists of ready ids and of those to be tried again, a sorted set of unacked ids by the second
// in which their time is over, a hash of the retries left and a set of garbage.
//
// Once a second (its WithFetchInterval) one goroutine moves all that are due from pending to ready and takes all of them,
// one by one. The callbacks run in goroutines of their own, and after each of them the two sweeps run.
func delayqueue(sends bool) {
	pool := &redis.Pool{MaxIdle: concurrency + 1, Dial: func() (redis.Conn, error) { return redis.Dial("tcp", address) }}
	q := design{pool}
	if sends {
		next := 0
		send(func(payload string, delay time.Duration) error {
			next++
			return q.send(next, payload, time.Now().Add(delay))
		})
		return
	}
	q.work()
}

const (
	pendingKey = "dp:jobs:pending"
	readyKey   = "dp:jobs:ready"
	unackKey   = "dp:jobs:unack"
	retryKey   = "dp:jobs:retry"
	leftKey    = "dp:jobs:left"
	garbageKey = "dp:jobs:garbage"
	messageKey = "dp:jobs:message:"

	retries        = 3
	fetchInterval  = time.Second
	maxConsumption = 5 // seconds
)

var (
	promote = redis.NewScript(2, `
		local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
		for from = 1, #due, 1000 do
			redis.call('LPUSH', KEYS[2], unpack(due, from, math.min(from + 999, #due)))
		end
		redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
		return #due`)
	take = redis.NewScript(2, `
		local id = redis.call('RPOP', KEYS[1])
		if id then redis.call('ZADD', KEYS[2], ARGV[1], id) end
		return id`)
	expire = redis.NewScript(4, `
		local over = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
		for _, id in ipairs(over) do
			if redis.call('HINCRBY', KEYS[3], id, -1) >= 0 then
				redis.call('LPUSH', KEYS[2], id)
			else
				redis.call('HDEL', KEYS[3], id)
				redis.call('SADD', KEYS[4], id)
			end
			redis.call('ZREM', KEYS[1], id)
		end
		return #over`)
)

type design struct{ pool *redis.Pool }

func (q design) do(command string, args ...interface{}) (interface{}, error) {
	conn := q.pool.Get()
	defer conn.Close()
	return conn.Do(command, args...)
}

func (q design) run(script *redis.Script, args ...interface{}) (interface{}, error) {
	conn := q.pool.Get()
	defer conn.Close()
	return script.Do(conn, args...)
}

func (q design) send(id int, payload string, due time.Time) error {
	if _, err := q.do("SET", messageKey+strconv.Itoa(id), payload, "EX", 3600); err != nil {
		return err
	}
	if _, err := q.do("HSET", leftKey, id, retries); err != nil {
		return err
	}
	_, err := q.do("ZADD", pendingKey, due.Unix(), id)
	return err
}

func (q design) work() {
	ids := make(chan string)
	for i := 0; i < concurrency; i++ {
		go func() {
			for id := range ids {
				q.callback(id)
				q.sweep()
			}
		}()
	}
	begun := false
	for range time.Tick(fetchInterval) {
		due, err := redis.Int(q.run(promote, pendingKey, readyKey, time.Now().Unix()))
		check(err)
		if due > 0 && !begun && !stamped {
			// The time of fetching all jobs counts, too.
			begun = true
			tell("first")
		}
		var taken []string
		for _, list := range []string{readyKey, retryKey} {
			for {
				id, err := redis.String(q.run(take, list, unackKey, time.Now().Unix()+maxConsumption))
				if err == redis.ErrNil {
					break
				}
				check(err)
				taken = append(taken, id)
			}
		}
		go func() {
			for _, id := range taken {
				ids <- id
			}
		}()
		q.sweep()
	}
}

func (q design) callback(id string) {
	payload, err := redis.Bytes(q.do("GET", messageKey+id))
	if err == redis.ErrNil {
		return
	}
	check(err)
	handle(payload)
	for _, command := range [][]interface{}{{"ZREM", unackKey, id}, {"HDEL", leftKey, id}, {"DEL", messageKey + id}} {
		_, err := q.do(command[0].(string), command[1:]...)
		check(err)
	}
}

// sweep delivers messages again that took too long, and removes those that have failed too often.
func (q design) sweep() {
	_, err := q.run(expire, unackKey, retryKey, leftKey, garbageKey, time.Now().Unix())
	check(err)
	garbage, err := redis.Strings(q.do("SMEMBERS", garbageKey))
	check(err)
	for _, id := range garbage {
		_, err := q.do("DEL", messageKey+id)
		check(err)
		_, err = q.do("SREM", garbageKey, id)
		check(err)
	}
}
