package dq

import "testing"

// One FETCH acks messages with results or messages without, because RESULTS has a text for each receipt.
func TestOneFetchAcksResultsOrNone(t *testing.T) {
	var a acks
	a.init()
	result := "fine"
	messages := []*Message{{Receipt: 1}, {Receipt: 2}, {Receipt: 3}}
	a.endFetch()
	for i, m := range messages {
		one := done{message: m}
		if i == 1 {
			one.result = &result
		}
		a.add(one)
	}
	if now := a.beginFetch(); len(now) != 2 || now[0].message != messages[0] || now[1].message != messages[2] {
		t.Fatalf("the fetch acks %v", now)
	}
	if late := a.takeLate(); len(late) != 1 || late[0].message != messages[1] {
		t.Fatalf("acked by themselves are %v", late)
	}
}
