package dq

import (
	"strconv"
	"time"
)

// Effects are changes of Redis keys that go with an ack (APPLY): all are done together with it, or none is. Nothing is written
// if the lease was lost.
//
// They are an option of Ack (of one message) and of Fetch with Acking, and one of the arguments of AckSend. A handler adds to
// Message.Effects, and its worker acks with them. A method adds one effect or condition and returns the object itself:
//
//	queue.Ack(ctx, dq.Receipts(m), new(dq.Effects).IncrBy("paid", 5).HSet("order:7", "state", "paid").IfExists("order:7"))
//
// The server checks everything first. The Code of its error says why not (CONDITION, WRONGTYPE, NOPERM), a number behind it
// which one, and then nothing has changed.
type Effects struct {
	// Applied has the replies of the plain commands, after the call; nil if the lease was lost. Strings are strings.
	Applied []interface{}

	effects, conditions [][]string
}

func (e *Effects) add(words ...string) *Effects {
	e.effects = append(e.effects, words)
	return e
}

func (e *Effects) onlyIf(words ...string) *Effects {
	e.conditions = append(e.conditions, words)
	return e
}

// Set is SET.
func (e *Effects) Set(key, value string) *Effects { return e.add("SET", key, value) }

// SetFor is SET for this long (PX).
func (e *Effects) SetFor(span time.Duration, key, value string) *Effects {
	return e.add("SET", key, value, "PX", millis(span))
}

// Delete is DEL.
func (e *Effects) Delete(key string) *Effects { return e.add("DEL", key) }

// IncrBy is INCRBY.
func (e *Effects) IncrBy(key string, by int64) *Effects { return e.add("INCRBY", key, number(by)) }

// HSet is HSET of one field.
func (e *Effects) HSet(key, field, value string) *Effects { return e.add("HSET", key, field, value) }

// HDel is HDEL of one field.
func (e *Effects) HDel(key, field string) *Effects { return e.add("HDEL", key, field) }

// HIncrBy is HINCRBY.
func (e *Effects) HIncrBy(key, field string, by int64) *Effects {
	return e.add("HINCRBY", key, field, number(by))
}

// SAdd is SADD of one member.
func (e *Effects) SAdd(key, member string) *Effects { return e.add("SADD", key, member) }

// SRem is SREM of one member.
func (e *Effects) SRem(key, member string) *Effects { return e.add("SREM", key, member) }

// ZAdd is ZADD of one member.
func (e *Effects) ZAdd(key string, score float64, member string) *Effects {
	return e.add("ZADD", key, decimal(score), member)
}

// ZIncrBy is ZINCRBY.
func (e *Effects) ZIncrBy(key string, by float64, member string) *Effects {
	return e.add("ZINCRBY", key, decimal(by), member)
}

// ZRem is ZREM of one member.
func (e *Effects) ZRem(key, member string) *Effects { return e.add("ZREM", key, member) }

// LPush is LPUSH of one element.
func (e *Effects) LPush(key, value string) *Effects { return e.add("LPUSH", key, value) }

// RPush is RPUSH of one element.
func (e *Effects) RPush(key, value string) *Effects { return e.add("RPUSH", key, value) }

// XAdd is XADD of an entry of these fields and values, whose id the server gives.
func (e *Effects) XAdd(key string, pairs ...string) *Effects {
	return e.add(append([]string{"XADD", key, count(len(pairs) / 2)}, pairs...)...)
}

// XAddTo is XAdd to a stream that is trimmed to this many entries (MAXLEN).
func (e *Effects) XAddTo(maxLen int, key string, pairs ...string) *Effects {
	e.XAdd(key, pairs...)
	last := len(e.effects) - 1
	e.effects[last] = append(e.effects[last], "MAXLEN", count(maxLen))
	return e
}

// PExpire is PEXPIRE.
func (e *Effects) PExpire(key string, span time.Duration) *Effects {
	return e.add("PEXPIRE", key, millis(span))
}

// IfExists is a condition: there is such a key.
func (e *Effects) IfExists(key string) *Effects { return e.onlyIf("EXISTS", key) }

// IfMissing is a condition: there is no such key.
func (e *Effects) IfMissing(key string) *Effects { return e.onlyIf("MISSING", key) }

// IfEquals is a condition: the key holds this string.
func (e *Effects) IfEquals(key, value string) *Effects { return e.onlyIf("EQUALS", key, value) }

func decimal(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }

// isEmpty reports whether there is neither an effect nor a condition. Nil has none.
func (e *Effects) isEmpty() bool { return e == nil || len(e.effects)+len(e.conditions) == 0 }

// words returns the options of ACK, ACKSEND and FETCH.
func (e *Effects) words() (words []string) {
	if e.isEmpty() {
		return nil
	}
	for i, parts := range [][][]string{e.effects, e.conditions} {
		if len(parts) > 0 {
			words = append(words, []string{"APPLY", "IF"}[i], count(len(parts)))
		}
		for _, part := range parts {
			words = append(words, part...)
		}
	}
	return words
}

func (e *Effects) ackWords() []string   { return e.words() }
func (e *Effects) fetchWords() []string { return e.words() }

// followingWords returns none: they stand before all that follows from a message.
func (e *Effects) followingWords(string) []string { return nil }

// keep keeps what was applied. It returns how many messages were acked.
func (e *Effects) keep(applied interface{}) int {
	e.Applied = nil
	if applied == nil {
		return 0
	}
	for _, one := range list(applied) {
		if bytes, ok := one.([]byte); ok {
			one = string(bytes)
		}
		e.Applied = append(e.Applied, one)
	}
	return 1
}

// rest keeps what was applied, and returns the rest of a reply of FETCH or ACKSEND. Without effects that is all of it.
func (e *Effects) rest(reply interface{}) interface{} {
	if e.isEmpty() {
		return reply
	}
	both := []interface{}{nil, nil}
	if reply != nil {
		both = listOf(2, reply)
	}
	e.keep(both[0])
	return both[1]
}

// effectsAmong returns the effects that are among options, or nil.
func effectsAmong[T any](options []T) *Effects {
	for _, one := range options {
		if effects, ok := any(one).(*Effects); ok {
			return effects
		}
	}
	return nil
}
