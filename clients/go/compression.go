package dq

import (
	"context"
	"fmt"
)

const encodingHeader = "dq-encoding"

// Compression is a Middleware that compresses payloads by zstd, alike in all languages (docs/secrets.md). Encoder and Decoder
// fit those of github.com/klauspost/compress/zstd:
//
//	encoder, err := zstd.NewWriter(nil)
//	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(64<<20))
//	mails.Middleware = []dq.Middleware{&dq.Compression{Encoder: encoder, Decoder: decoder}}
//
// The limit of the decoder protects the memory: a small message could become a large one.
type Compression struct {
	Encoder interface {
		EncodeAll(src, dst []byte) []byte
	}
	Decoder interface {
		DecodeAll(input, dst []byte) ([]byte, error)
	}
	// Above is how many bytes a payload must have to be compressed, 1,024 by default.
	Above int
}

// Send compresses a message, if that makes it smaller, and sends it.
func (c *Compression) Send(ctx context.Context, s *Sending, next func(context.Context) (string, error)) (string, error) {
	return coding(c.Seal).send(ctx, s, next)
}

// Handle gives the handler the message as it was.
func (c *Compression) Handle(ctx context.Context, m *Message, next Handler) error {
	return coding(c.Open).handle(ctx, m, next)
}

// Seal compresses a payload, if that makes it smaller.
func (c *Compression) Seal(queue, id string, payload []byte, headers map[string]string) ([]byte, map[string]string, error) {
	above := c.Above
	if above <= 0 {
		above = 1024
	}
	if len(payload) < above {
		return payload, headers, nil
	}
	packed := c.Encoder.EncodeAll(payload, nil)
	if len(packed) >= len(payload) {
		return payload, headers, nil
	}
	return packed, with(headers, encodingHeader, "zstd"), nil
}

// Open returns the payload as it was. The error is a Reject if zstd has not compressed it, or if the decoder refuses it.
func (c *Compression) Open(queue, id string, payload []byte, headers map[string]string) ([]byte, map[string]string, error) {
	encoding, given := headers[encodingHeader]
	if !given {
		return payload, headers, nil
	}
	if encoding != "zstd" {
		return nil, nil, fmt.Errorf("the encoding %q is not known", encoding)
	}
	plain, err := c.Decoder.DecodeAll(payload, nil)
	if err != nil {
		return nil, nil, Reject{fmt.Errorf("the payload cannot be decompressed: %w", err)}
	}
	return plain, without(headers, encodingHeader), nil
}

func with(headers map[string]string, name, value string) map[string]string {
	fields := without(headers, name)
	fields[name] = value
	return fields
}

func without(headers map[string]string, name string) map[string]string {
	fields := map[string]string{}
	for one, value := range headers {
		if one != name {
			fields[one] = value
		}
	}
	return fields
}
