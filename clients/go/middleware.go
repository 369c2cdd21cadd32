package dq

import "context"

// Middleware is code that runs around each Send and each handler of a queue: encryption, compression, traces, logs. The
// first one of a queue is the outermost. A program may use one from several goroutines.
type Middleware interface {
	// Send calls next once, and returns what it returns. It may change the message before.
	Send(ctx context.Context, s *Sending, next func(context.Context) (string, error)) (string, error)
	// Handle calls next once, and returns what it returns. An error is the failure of the message, also Retry, Reject,
	// Snooze and Park.
	Handle(ctx context.Context, m *Message, next Handler) error
}

// Sending is a message that is about to be sent.
type Sending struct {
	// Queue is the key of the queue.
	Queue, ID string
	Payload   []byte
	Headers   map[string]string
	// Options are the other options.
	Options []SendOption
}

// Option returns the value of an option that has one: Option("TYPE").
func (s *Sending) Option(name string) (value string, given bool) { return valueOf(s.Options, name) }

func newSending(q *Queue, id string, payload []byte, options []SendOption) *Sending {
	s := &Sending{Queue: q.key, ID: id, Payload: payload, Headers: map[string]string{}}
	for _, one := range options {
		words := one.sendWords()
		switch {
		case len(words) > 1 && words[0] == "HEADERS":
			for i := 2; i+1 < len(words); i += 2 {
				s.Headers[words[i]] = words[i+1]
			}
		case len(words) > 0 && words[0] != "ID":
			s.Options = append(s.Options, one)
		}
	}
	return s
}

func (s *Sending) words() []string {
	words := append([]string{string(s.Payload)}, sendWords(s.Options)...)
	if len(s.Headers) > 0 {
		words = append(words, Headers(s.Headers).sendWords()...)
	}
	return append(words, "ID", s.ID)
}

func (q *Queue) sendThrough(ctx context.Context, s *Sending, rest []Middleware) (string, error) {
	if len(rest) > 0 {
		return rest[0].Send(ctx, s, func(ctx context.Context) (string, error) { return q.sendThrough(ctx, s, rest[1:]) })
	}
	reply, err := q.sendInsisting(ctx, s.words())
	return read(reply, err, text)
}

// through returns a handler inside of its middleware.
func through(all []Middleware, handler Handler) Handler {
	for i := len(all) - 1; i >= 0; i-- {
		one, next := all[i], handler
		handler = func(ctx context.Context, m *Message) error { return one.Handle(ctx, m, next) }
	}
	return handler
}

// coding writes the payload and the headers of a message of a queue and an id in another form, or as they were.
type coding func(queue, id string, payload []byte, headers map[string]string) ([]byte, map[string]string, error)

func (seal coding) send(ctx context.Context, s *Sending, next func(context.Context) (string, error)) (string, error) {
	payload, headers, err := seal(s.Queue, s.ID, s.Payload, s.Headers)
	if err != nil {
		return "", err
	}
	s.Payload, s.Headers = payload, headers
	return next(ctx)
}

func (open coding) handle(ctx context.Context, m *Message, next Handler) error {
	payload, headers, err := open(m.Queue.Key(), m.ID, m.Payload, m.Headers)
	if err != nil {
		return err
	}
	m.Payload, m.Headers = payload, headers
	return next(ctx, m)
}

// Layers is several codings, such as Compression, Secrets and Offload. A message that is sent goes through the first one
// first, and one that comes through the last one first.
type Layers []interface {
	Seal(queue, id string, payload []byte, headers map[string]string) ([]byte, map[string]string, error)
	Open(queue, id string, payload []byte, headers map[string]string) ([]byte, map[string]string, error)
}

// Send puts a message into its layers and sends it.
func (l Layers) Send(ctx context.Context, s *Sending, next func(context.Context) (string, error)) (string, error) {
	return coding(l.Seal).send(ctx, s, next)
}

// Handle gives the handler the message as it was.
func (l Layers) Handle(ctx context.Context, m *Message, next Handler) error {
	return coding(l.Open).handle(ctx, m, next)
}

// Seal puts a message into its layers.
func (l Layers) Seal(queue, id string, payload []byte, headers map[string]string) (_ []byte, _ map[string]string, err error) {
	for i := 0; i < len(l) && err == nil; i++ {
		payload, headers, err = l[i].Seal(queue, id, payload, headers)
	}
	return payload, headers, err
}

// Open returns the payload and the headers as they were.
func (l Layers) Open(queue, id string, payload []byte, headers map[string]string) (_ []byte, _ map[string]string, err error) {
	for i := len(l) - 1; i >= 0 && err == nil; i-- {
		payload, headers, err = l[i].Open(queue, id, payload, headers)
	}
	return payload, headers, err
}
