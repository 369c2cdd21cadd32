//go:build zstd

package dq

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/klauspost/compress/zstd"
)

type shelf map[string][]byte

func (s shelf) Get(_ context.Context, key string) ([]byte, error)     { return s[key], nil }
func (s shelf) Put(_ context.Context, key string, value []byte) error { s[key] = value; return nil }
func (s shelf) Delete(_ context.Context, key string) error            { delete(s, key); return nil }

type noServer struct{}

func (noServer) Do(args ...interface{}) (interface{}, error) { return int64(1), nil }

func TestLayersAreReadAlikeInAllLanguages(t *testing.T) {
	given := secretCases(t)
	encoder, _ := zstd.NewWriter(nil)
	decoder, _ := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(given.Layers.Most))
	secrets := &Secrets{Key: "2026", Keys: given.Keys, Headers: given.Headers, Queues: given.Queues}
	over := func(store shelf) Layers {
		return Layers{&Compression{Encoder: encoder, Decoder: decoder}, secrets, &Offload{Store: store, Cli: noServer{}, Above: given.Layers.Above}}
	}
	for _, one := range given.Layers.Cases {
		plain := one.Payload
		if one.Times > 0 {
			plain = bytes.Repeat(plain, one.Times)
		}
		layers := over(one.Store)
		sealed, fields, err := layers.Seal("mails", "m", plain, nil)
		if err != nil || len(fields) != len(one.Fields) {
			t.Fatalf("%s: %v %v", one.Name, fields, err)
		}
		for _, form := range []secretCase{{Sealed: one.Sealed, Fields: one.Fields}, {Sealed: sealed, Fields: fields}} {
			payload, headers, err := layers.Open("mails", "m", form.Sealed, form.Fields)
			if err != nil || !bytes.Equal(payload, plain) || len(headers) != 0 {
				t.Errorf("%s: %q %v %v", one.Name, payload, headers, err)
			}
		}
	}
	for _, one := range given.Layers.Broken {
		_, _, err := over(shelf{}).Open("mails", "m", one.Sealed, one.Fields)
		var reject Reject
		if err == nil || errors.As(err, &reject) != (one.Error == "reject") {
			t.Errorf("%s: %v", one.Name, err)
		}
	}
}
