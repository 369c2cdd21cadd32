package dq

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	mathrand "math/rand"
	"time"
)

// insist runs a command, and repeats it after errors that may pass, for as long as patience says. Only for commands that
// may be run twice.
func insist(ctx context.Context, cli RedisCli, patience time.Duration, command []string) (interface{}, error) {
	return insistOn(ctx, patience, IsTransient, func() (interface{}, error) { return do(cli, command) })
}

// insistOn runs a function, and repeats it after errors for which again returns true, for the time of patience.
func insistOn(
	ctx context.Context, patience time.Duration, again func(error) bool, run func() (interface{}, error),
) (interface{}, error) {
	deadline := time.Now().Add(patience)
	for tries := 0; ; tries++ {
		reply, err := run()
		pause := pauseAfter(tries)
		if err == nil || !again(err) || time.Now().Add(pause).After(deadline) || !sleep(ctx, pause) {
			return reply, err
		}
	}
}

// pauseAfter returns how long to wait after that many tries: doubling up to 1 s, and partly random.
func pauseAfter(tries int) time.Duration {
	longest := time.Second
	if tries < 6 {
		longest = 20 * time.Millisecond << tries
	}
	return longest/2 + time.Duration(mathrand.Int63n(int64(longest/2)))
}

// sleep waits. It returns false if ctx was done before.
func sleep(ctx context.Context, span time.Duration) bool {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// newID returns a UUIDv7: Unix ms, then 74 random bits.
func newID() string {
	var id [16]byte
	mustRead(id[6:])
	ms := time.Now().UnixMilli()
	for i := 0; i < 6; i++ {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	text := hex.EncodeToString(id[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// newToken returns a token that no other call uses.
func newToken() string {
	var token [12]byte
	mustRead(token[:])
	return hex.EncodeToString(token[:])
}

func mustRead(into []byte) {
	if _, err := rand.Read(into); err != nil {
		panic("dq: the system has no random numbers: " + err.Error())
	}
}
