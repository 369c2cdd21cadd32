//go:build opentelemetry

// Package opentelemetry gives package dq traces and metrics, by OpenTelemetry's API 1.16 or newer. It is only built with the tag
// opentelemetry, so that programs without it need nothing of that: go build -tags opentelemetry.
package opentelemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"dq"
)

// Tracing is a Middleware with the spans and metrics of the semantic conventions for messaging: "send mails" (kind producer)
// around a Send, and "process mails" (kind consumer) around a handler. The first attempt is a child of the send, and later
// ones begin traces of their own that are linked to it. The context of a handler has its span.
type Tracing struct {
	tracer              trace.Tracer
	propagator          propagation.TextMapPropagator
	sent, consumed      metric.Int64Counter
	sending, processing metric.Float64Histogram
}

// New makes it. The provider of traces and the propagator are those of the process. The meter, such as
// otel.Meter("dq"), may be nil: then there are no metrics.
func New(meter metric.Meter) (*Tracing, error) {
	t := &Tracing{tracer: otel.Tracer("dq"), propagator: otel.GetTextMapPropagator()}
	if meter == nil {
		return t, nil
	}
	var all [4]error
	t.sent, all[0] = meter.Int64Counter("messaging.client.sent.messages", metric.WithUnit("{message}"))
	t.consumed, all[1] = meter.Int64Counter("messaging.client.consumed.messages", metric.WithUnit("{message}"))
	t.sending, all[2] = meter.Float64Histogram("messaging.client.operation.duration", metric.WithUnit("s"))
	t.processing, all[3] = meter.Float64Histogram("messaging.process.duration", metric.WithUnit("s"))
	for _, err := range all {
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Send gives the message the headers of its span.
func (t *Tracing) Send(ctx context.Context, s *dq.Sending, next func(context.Context) (string, error)) (id string, err error) {
	about := attributes("send", s.Queue)
	more := []attribute.KeyValue{attribute.String("messaging.message.id", s.ID)}
	for _, one := range [][2]string{{"TYPE", "dq.type"}, {"GROUP", "dq.group"}} {
		if value, given := s.Option(one[0]); given {
			more = append(more, attribute.String(one[1], value))
		}
	}
	ctx, span := t.tracer.Start(ctx, "send "+s.Queue, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(append(about, more...)...))
	defer end(span, time.Now(), &err, func(seconds float64, failed ...attribute.KeyValue) {
		with := metric.WithAttributes(append(about, failed...)...)
		if t.sent != nil {
			t.sent.Add(ctx, 1, with)
			t.sending.Record(ctx, seconds, with)
		}
	})
	t.propagator.Inject(ctx, carrier(s.Headers))
	return next(ctx)
}

// Handle runs the handler in a span.
func (t *Tracing) Handle(ctx context.Context, m *dq.Message, next dq.Handler) (err error) {
	about := attributes("process", m.Queue.Key())
	more := []attribute.KeyValue{attribute.String("messaging.message.id", m.ID), attribute.Int("dq.attempt", m.Attempt)}
	if m.Type != "" {
		more = append(more, attribute.String("dq.type", m.Type))
	}
	if m.Group != "" {
		more = append(more, attribute.String("dq.group", m.Group))
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(append(about, more...)...)}
	ctx = t.propagator.Extract(ctx, carrier(m.Headers))
	if sender := trace.SpanContextFromContext(ctx); sender.IsValid() && m.Attempt > 1 {
		options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: sender}))
	}
	ctx, span := t.tracer.Start(ctx, "process "+m.Queue.Key(), options...)
	defer end(span, time.Now(), &err, func(seconds float64, failed ...attribute.KeyValue) {
		if t.consumed != nil {
			t.consumed.Add(ctx, 1, metric.WithAttributes(about...))
			t.processing.Record(ctx, seconds, metric.WithAttributes(append(about, failed...)...))
		}
	})
	err = errEnded
	return next(ctx, m)
}

// errEnded stays the error of a handler that has neither returned nor failed.
var errEnded = errors.New("the handler has panicked, or has ended its goroutine")

// end ends a span. A message that is given back without blame has not failed.
func end(span trace.Span, began time.Time, err *error, measured func(seconds float64, failed ...attribute.KeyValue)) {
	defer span.End()
	failure, seconds := *err, time.Since(began).Seconds()
	var snooze dq.Snooze
	var park dq.Park
	if failure == nil || errors.As(failure, &snooze) || errors.As(failure, &park) {
		measured(seconds)
		return
	}
	span.RecordError(failure)
	span.SetStatus(codes.Error, failure.Error())
	kind := attribute.String("error.type", fmt.Sprintf("%T", failure))
	span.SetAttributes(kind)
	measured(seconds, kind)
}

func attributes(operation, queue string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("messaging.system", "dq"),
		attribute.String("messaging.destination.name", queue),
		attribute.String("messaging.operation.name", operation),
		attribute.String("messaging.operation.type", operation),
	}[:4:4]
}

// carrier is the headers of a message.
type carrier map[string]string

func (c carrier) Get(name string) string { return c[name] }
func (c carrier) Set(name, value string) { c[name] = value }
func (c carrier) Keys() (names []string) {
	for name := range c {
		names = append(names, name)
	}
	return names
}
