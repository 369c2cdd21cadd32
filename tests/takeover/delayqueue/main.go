// The old side: the library HDT3213/delayqueue, over redigo. PORT WHAT [OPTIONS].
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/hdt3213/delayqueue"
)

// client is a delayqueue.RedisCli over one connection of a pool each.
type client struct{ pool *redis.Pool }

func (c client) do(name string, args ...interface{}) (interface{}, error) {
	conn := c.pool.Get()
	defer conn.Close()
	reply, err := conn.Do(name, args...)
	if reply == nil && err == nil {
		return nil, delayqueue.NilErr
	}
	return texts(reply), err
}

func texts(reply interface{}) interface{} {
	switch r := reply.(type) {
	case []byte:
		return string(r)
	case []interface{}:
		for i := range r {
			r[i] = texts(r[i])
		}
	}
	return reply
}

func (c client) eval(name, script string, keys []string, args []interface{}) (interface{}, error) {
	words := []interface{}{script, len(keys)}
	for _, key := range keys {
		words = append(words, key)
	}
	return c.do(name, append(words, args...)...)
}

func (c client) Eval(script string, keys []string, args []interface{}) (interface{}, error) {
	return c.eval("EVAL", script, keys, args)
}
func (c client) EvalSha(sha string, keys []string, args []interface{}) (interface{}, error) {
	return c.eval("EVALSHA", sha, keys, args)
}
func (c client) ScriptLoad(script string) (string, error) {
	return redis.String(c.do("SCRIPT", "LOAD", script))
}
func (c client) Set(key, value string, life time.Duration) error {
	_, err := c.do("SET", key, value, "PX", life.Milliseconds())
	return err
}
func (c client) Get(key string) (string, error) { return redis.String(c.do("GET", key)) }
func (c client) Del(keys []string) error {
	_, err := c.do("DEL", redis.Args{}.AddFlat(keys)...)
	return err
}
func (c client) HSet(key, field, value string) error {
	_, err := c.do("HSET", key, field, value)
	return err
}
func (c client) HDel(key string, fields []string) error {
	_, err := c.do("HDEL", redis.Args{key}.AddFlat(fields)...)
	return err
}
func (c client) SMembers(key string) ([]string, error) { return redis.Strings(c.do("SMEMBERS", key)) }
func (c client) SRem(key string, members []string) error {
	_, err := c.do("SREM", redis.Args{key}.AddFlat(members)...)
	return err
}
func (c client) ZAdd(key string, values map[string]float64) error {
	words := redis.Args{key}
	for member, score := range values {
		words = words.Add(strconv.FormatFloat(score, 'f', -1, 64), member)
	}
	_, err := c.do("ZADD", words...)
	return err
}
func (c client) ZRem(key string, members []string) (int64, error) {
	return redis.Int64(c.do("ZREM", redis.Args{key}.AddFlat(members)...))
}
func (c client) ZCard(key string) (int64, error)            { return redis.Int64(c.do("ZCARD", key)) }
func (c client) ZScore(key, member string) (float64, error) { return redis.Float64(c.do("ZSCORE", key, member)) }
func (c client) LLen(key string) (int64, error)             { return redis.Int64(c.do("LLEN", key)) }
func (c client) LRem(key string, count int64, value string) (int64, error) {
	return redis.Int64(c.do("LREM", key, count, value))
}
func (c client) Publish(channel, payload string) error {
	_, err := c.do("PUBLISH", channel, payload)
	return err
}
func (c client) Subscribe(string) (<-chan string, func(), error) { return nil, nil, fmt.Errorf("not needed") }

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	cli := client{&redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", "127.0.0.1:"+os.Args[1]) }}}
	var options []interface{}
	for _, word := range os.Args[3:] {
		if prefix := strings.TrimPrefix(word, "prefix="); prefix != word {
			options = append(options, delayqueue.UseCustomPrefix(prefix))
		} else if word == "tags" {
			options = append(options, delayqueue.UseHashTagKey())
		}
	}
	send := func(queue *delayqueue.DelayQueue, payload string, delay time.Duration, retries int) {
		check(queue.SendDelayMsg(payload, delay, delayqueue.WithRetryCount(retries), delayqueue.WithMsgTTL(24*time.Hour)))
	}
	switch os.Args[2] {
	case "fill":
		// Two messages that a consumer has and does not end, one of them without retries, then those that wait.
		held := make(chan struct{})
		queue := delayqueue.NewQueue0("orders", cli, append(options, func(string) bool { <-held; return true })...)
		queue.WithMaxConsumeDuration(4 * time.Second).WithFetchLimit(2).WithConcurrent(2).WithFetchInterval(50 * time.Millisecond)
		send(queue, "held", 0, 5)
		send(queue, "held-for-the-last-time", 0, 0)
		queue.StartConsume()
		time.Sleep(1500 * time.Millisecond)
		fallthrough
	case "later":
		queue := delayqueue.NewQueue0("orders", cli, append(options, func(string) bool { return true })...)
		for n := 0; n < 10; n++ {
			send(queue, strconv.Itoa(n), time.Hour+time.Duration(n)*time.Second, n)
		}
	}
}
