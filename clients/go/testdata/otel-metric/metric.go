// Package metric stands for go.opentelemetry.io/otel/metric in the tests, because Debian's is older than its first stable
// release: the declarations that dq/opentelemetry uses, and a meter that counts.
package metric

import (
	"context"
	"sort"
	"sync"

	"go.opentelemetry.io/otel/attribute"
)

type Int64Counter interface {
	Add(ctx context.Context, incr int64, options ...AddOption)
}

type Float64Histogram interface {
	Record(ctx context.Context, value float64, options ...RecordOption)
}

type Meter interface {
	Int64Counter(name string, options ...Int64CounterOption) (Int64Counter, error)
	Float64Histogram(name string, options ...Float64HistogramOption) (Float64Histogram, error)
}

type (
	Int64CounterOption     interface{}
	Float64HistogramOption interface{}
	AddOption              interface{}
	RecordOption           interface{}
)

func WithUnit(unit string) interface{} { return unit }

func WithAttributes(all ...attribute.KeyValue) interface{} { return attribute.NewSet(all...) }

// Recorder is a Meter that counts the calls with the same attributes.
type Recorder struct {
	mutex sync.Mutex
	calls map[string]int
}

func (r *Recorder) Int64Counter(name string, options ...Int64CounterOption) (Int64Counter, error) {
	return instrument{r, name}, nil
}

func (r *Recorder) Float64Histogram(name string, options ...Float64HistogramOption) (Float64Histogram, error) {
	return instrument{r, name}, nil
}

// Counts returns the numbers of calls by name and attributes.
func (r *Recorder) Counts() map[string]int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.calls
}

// Names returns the names and attributes, sorted.
func (r *Recorder) Names() (names []string) {
	for name := range r.Counts() {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

type instrument struct {
	of   *Recorder
	name string
}

func (i instrument) count(option interface{}) {
	set := option.(attribute.Set)
	i.of.mutex.Lock()
	defer i.of.mutex.Unlock()
	if i.of.calls == nil {
		i.of.calls = map[string]int{}
	}
	i.of.calls[i.name+" "+set.Encoded(attribute.DefaultEncoder())]++
}

func (i instrument) Add(_ context.Context, _ int64, options ...AddOption) { i.count(options[0]) }

func (i instrument) Record(_ context.Context, _ float64, options ...RecordOption) {
	i.count(options[0])
}
