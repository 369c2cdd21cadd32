package dq

import (
	"fmt"
	"os"
	"sync"
)

// ConsumerName returns the name of this process for DQ.CONSUMERS.
func ConsumerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// working has the numbers of the workers of this process that run now.
var working = struct {
	sync.Mutex
	numbers map[int]bool
}{numbers: map[int]bool{}}

// takeConsumerName returns a name that no other worker has that runs in this process, because a TOKEN repeats the last
// delivery of its consumer. The first one has that of the process. The function that it returns makes the name free.
func takeConsumerName() (name string, free func()) {
	working.Lock()
	defer working.Unlock()
	number := 1
	for working.numbers[number] {
		number++
	}
	working.numbers[number] = true
	free = func() {
		working.Lock()
		defer working.Unlock()
		delete(working.numbers, number)
	}
	if number == 1 {
		return ConsumerName(), free
	}
	return ConsumerName() + ":" + count(number), free
}
