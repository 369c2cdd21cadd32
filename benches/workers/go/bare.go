package main

import "github.com/gomodule/redigo/redis"

// bare is the ceiling of Go: a loop over redigo that only fetches and acks, COUNT at a time.
func bare(bool) {
	conn, err := redis.Dial("tcp", address)
	check(err)
	words := []interface{}{"jobs", "COUNT", concurrency, "BLOCK", 2000}
	var acks []interface{}
	for {
		batch, err := redis.Values(conn.Do("DQ.FETCH", append(words[:5:5], acks...)...))
		if err != nil && err != redis.ErrNil {
			panic(err)
		}
		acks = nil
		if len(batch) > 0 {
			acks = append(acks, "ACK", len(batch))
		}
		for _, one := range batch {
			message := one.([]interface{})
			arrived(message[3].([]byte))
			acks = append(acks, message[1])
		}
	}
}
