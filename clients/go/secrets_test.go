package dq

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"testing"
)

// secretCase is a case of tests/conformance/secrets.json.
type secretCase struct {
	Name, Queue, ID, Opened, Error string
	Payload, Sealed                []byte
	Headers, Fields                map[string]string
	Times                          int
	Store                          map[string][]byte
}

type secretFile struct {
	Keys            map[string][]byte
	Headers, Queues []string
	Cases, Broken   []secretCase
	Layers          struct {
		Most          uint64
		Above         int
		Cases, Broken []secretCase
	}
}

func secretCases(t *testing.T) (given secretFile) {
	file, err := os.ReadFile("../../tests/conformance/secrets.json")
	if err == nil {
		err = json.Unmarshal(file, &given)
	}
	if err != nil {
		t.Fatal(err)
	}
	return given
}

func TestMessagesAreEncryptedAlikeInAllLanguages(t *testing.T) {
	given := secretCases(t)
	secrets := &Secrets{Key: "2026", Keys: given.Keys, Headers: given.Headers, Queues: given.Queues}
	for _, one := range given.Cases {
		queue := one.Queue
		if one.Opened != "" {
			queue = one.Opened
		}
		sealed, fields, err := secrets.Seal(one.Queue, one.ID, one.Payload, one.Headers)
		if err != nil || len(fields) != len(one.Fields) {
			t.Fatalf("%s: %v %v", one.Name, fields, err)
		}
		for _, form := range []secretCase{{Sealed: one.Sealed, Fields: one.Fields}, {Sealed: sealed, Fields: fields}} {
			payload, headers, err := secrets.Open(queue, one.ID, form.Sealed, form.Fields)
			if err != nil || !bytes.Equal(payload, one.Payload) || !reflect.DeepEqual(headers, one.Headers) {
				t.Errorf("%s: %q %v %v", one.Name, payload, headers, err)
			}
		}
	}
	for _, one := range given.Broken {
		_, _, err := secrets.Open(one.Queue, one.ID, one.Sealed, one.Fields)
		var reject Reject
		if err == nil || errors.As(err, &reject) != (one.Error == "reject") {
			t.Errorf("%s: %v", one.Name, err)
		}
	}
}
