//go:build opentelemetry

package opentelemetry_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"dq"
	"dq/opentelemetry"
	"dq/redigo"
)

func TestASendAndItsAttemptsAreInTracesAndMetrics(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	otel.SetTracerProvider(sdk.NewTracerProvider(sdk.WithSyncer(spans)))
	otel.SetTextMapPropagator(propagation.TraceContext{})
	figures := &metric.Recorder{}
	tracing, err := opentelemetry.New(figures)
	must(t, err)
	cli := redigo.Dial(os.Getenv("DQ_TEST_URL"))
	defer cli.Close()
	_, err = cli.Do("DEL", t.Name())
	must(t, err)
	q := dq.NewQueue(cli, t.Name())
	q.Middleware = []dq.Middleware{tracing, &dq.Secrets{Key: "k", Keys: map[string][]byte{"k": make([]byte, 32)}}}
	ctx, stop := context.WithCancel(context.Background())
	must(t, q.Create(ctx, dq.Retries(4), dq.Backoff("FIXED", 1e6)))
	id, err := q.Send(ctx, []byte("hello"), dq.Type("mail"), dq.Group("ann"), dq.Headers(map[string]string{"own": "x"}))
	must(t, err)
	worker := dq.Worker{Queue: q, Logf: t.Logf, Handler: func(ctx context.Context, m *dq.Message) error {
		if string(m.Payload) != "hello" || m.Headers["own"] != "x" || !trace.SpanFromContext(ctx).IsRecording() {
			t.Errorf("attempt %d: %q %v", m.Attempt, m.Payload, m.Headers)
		}
		switch m.Attempt {
		case 1:
			return errors.New("not yet")
		case 2:
			panic("oh")
		}
		stop()
		return dq.Snooze{}
	}}
	must(t, worker.Run(ctx))
	all := spans.GetSpans()
	if len(all) != 4 {
		t.Fatal(all)
	}
	for i, one := range all {
		kind, name := trace.SpanKindConsumer, "process "
		if i == 0 {
			kind, name = trace.SpanKindProducer, "send "
		}
		values := map[string]string{}
		for _, pair := range one.Attributes {
			values[string(pair.Key)] = pair.Value.Emit()
		}
		if one.SpanKind != kind || one.Name != name+q.Key() || values["messaging.operation.type"]+" " != name ||
			values["messaging.system"] != "dq" || values["messaging.destination.name"] != q.Key() ||
			values["messaging.message.id"] != id || values["dq.type"] != "mail" || values["dq.group"] != "ann" {
			t.Errorf("%s: %v", one.Name, values)
		}
	}
	send := all[0].SpanContext
	if all[1].Parent.SpanID() != send.SpanID() || all[1].SpanContext.TraceID() != send.TraceID() || len(all[1].Links) != 0 {
		t.Errorf("the first attempt is no child of the send: %+v", all[1])
	}
	for _, one := range all[2:] {
		if one.Parent.IsValid() || len(one.Links) != 1 || one.Links[0].SpanContext.SpanID() != send.SpanID() {
			t.Errorf("a later attempt is not linked to the send: %+v", one)
		}
	}
	if all[1].Status.Code != codes.Error || all[1].Status.Description != "not yet" || !strings.Contains(all[2].Status.Description, "panicked") ||
		all[3].Status.Code != codes.Unset {
		t.Errorf("%+v", all)
	}

	cli.Close()
	q.Patience = 0
	if _, err := q.Send(context.Background(), nil); err == nil {
		t.Error("sent over a closed connection")
	}
	about := func(operation, kind string) string {
		all := []attribute.KeyValue{
			attribute.String("messaging.system", "dq"), attribute.String("messaging.destination.name", q.Key()),
			attribute.String("messaging.operation.name", operation), attribute.String("messaging.operation.type", operation),
		}
		if kind != "" {
			all = append(all, attribute.String("error.type", kind))
		}
		set := attribute.NewSet(all...)
		return set.Encoded(attribute.DefaultEncoder())
	}
	for _, want := range []string{
		"messaging.client.sent.messages " + about("send", ""),
		"messaging.client.sent.messages " + about("send", "*dq.ConnError"),
		"messaging.client.operation.duration " + about("send", ""),
		"messaging.client.consumed.messages " + about("process", ""),
		"messaging.process.duration " + about("process", "*errors.errorString"),
		"messaging.process.duration " + about("process", ""),
	} {
		if figures.Counts()[want] == 0 {
			t.Errorf("%s is not among\n%s", want, strings.Join(figures.Names(), "\n"))
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
