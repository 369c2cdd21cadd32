package dq

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

const (
	keyHeader    = "dq-key"
	sealedHeader = "dq-sealed:"
)

// Secrets is a Middleware that encrypts the payloads of messages and some of their headers by AES-256-GCM, alike in all languages
// (docs/secrets.md). The queue and the id of a message are authenticated, so it must have been sent to the queue that it
// comes from. A program may use one from several goroutines.
type Secrets struct {
	// Key is the id of the key that encrypts. All of Keys decrypt.
	Key string
	// Keys has 32 bytes for each id.
	Keys map[string][]byte
	// Headers names the headers that are encrypted with the payload.
	Headers []string
	// Queues has the keys of other queues that messages may have been sent to before (DEADTO).
	Queues []string
	// Plain accepts messages without a key, too.
	Plain bool
}

// Send encrypts a message and sends it.
func (s *Secrets) Send(ctx context.Context, one *Sending, next func(context.Context) (string, error)) (string, error) {
	return coding(s.Seal).send(ctx, one, next)
}

// Handle decrypts a message and gives it to the handler.
func (s *Secrets) Handle(ctx context.Context, m *Message, next Handler) error {
	return coding(s.Open).handle(ctx, m, next)
}

// Seal encrypts the payload and the headers of a message of this queue and id.
func (s *Secrets) Seal(queue, id string, payload []byte, headers map[string]string) ([]byte, map[string]string, error) {
	gcm, err := s.cipher(s.Key)
	if err != nil {
		return nil, nil, err
	}
	fields := map[string]string{keyHeader: s.Key}
	for name, value := range headers {
		fields[name] = value
	}
	for _, name := range s.Headers {
		if value, given := headers[name]; given {
			delete(fields, name)
			fields[sealedHeader+name] = base64.StdEncoding.EncodeToString(encrypt(gcm, queue, id, "header:"+name, []byte(value)))
		}
	}
	return encrypt(gcm, queue, id, "payload", payload), fields, nil
}

// Open returns the payload and the headers of a message as they were. The error is a Reject if this is not what was sent
// with this id to one of the queues, and another one for an unknown key.
func (s *Secrets) Open(queue, id string, payload []byte, headers map[string]string) ([]byte, map[string]string, error) {
	key, given := headers[keyHeader]
	if !given {
		if s.Plain {
			return payload, headers, nil
		}
		return nil, nil, Reject{errors.New("the message is not encrypted")}
	}
	gcm, err := s.cipher(key)
	if err != nil {
		return nil, nil, err
	}
	for _, one := range append([]string{queue}, s.Queues...) {
		if opened, fields, err := open(gcm, one, id, payload, headers); err == nil {
			return opened, fields, nil
		}
	}
	return nil, nil, Reject{errors.New("the message is not what was sent with this id to this queue")}
}

func open(gcm cipher.AEAD, queue, id string, payload []byte, headers map[string]string) ([]byte, map[string]string, error) {
	opened, err := decrypt(gcm, queue, id, "payload", payload)
	if err != nil {
		return nil, nil, err
	}
	fields := map[string]string{}
	for name, value := range headers {
		plain := strings.TrimPrefix(name, sealedHeader)
		if name == keyHeader {
			continue
		}
		if plain == name {
			if _, sealed := headers[sealedHeader+name]; !sealed {
				fields[name] = value
			}
			continue
		}
		sealed, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return nil, nil, err
		}
		text, err := decrypt(gcm, queue, id, "header:"+plain, sealed)
		if err != nil {
			return nil, nil, err
		}
		fields[plain] = string(text)
	}
	return opened, fields, nil
}

func (s *Secrets) cipher(id string) (cipher.AEAD, error) {
	key := s.Keys[id]
	if len(key) != 32 {
		return nil, fmt.Errorf("there is no key %q of 32 bytes", id)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func encrypt(gcm cipher.AEAD, queue, id, part string, text []byte) []byte {
	nonce := make([]byte, gcm.NonceSize())
	mustRead(nonce)
	return gcm.Seal(nonce, nonce, text, associated(queue, id, part))
}

func decrypt(gcm cipher.AEAD, queue, id, part string, sealed []byte) ([]byte, error) {
	if len(sealed) < gcm.NonceSize() {
		return nil, errors.New("too short")
	}
	return gcm.Open(nil, sealed[:gcm.NonceSize()], sealed[gcm.NonceSize():], associated(queue, id, part))
}

// associated returns the data that is authenticated with a text: each part after its length.
func associated(parts ...string) (data []byte) {
	for _, part := range append([]string{"dq1"}, parts...) {
		data = binary.BigEndian.AppendUint32(data, uint32(len(part)))
		data = append(data, part...)
	}
	return data
}
