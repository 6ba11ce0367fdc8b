package otellock

import (
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/reqlock/reqlock/core"
)

const (
	// maxNames bounds the names that have attributes of their own: names are constants of a
	// program, unless the program makes them from requests.
	maxNames = 512
	// otherName is the name of all names beyond maxNames.
	otherName = "_other"
)

// A cache is a map that is read without a lock. It is copied for each new entry, so it suits
// few entries that are read often. The zero value is empty.
type cache[K comparable, V any] struct {
	entries atomic.Pointer[map[K]V]
}

// get returns the value of a key, if there is one.
func (c *cache[K, V]) get(key K) (V, bool) {
	entries := c.entries.Load()
	if entries == nil {
		var none V
		return none, false
	}
	value, ok := (*entries)[key]
	return value, ok
}

// put adds an entry. The caller excludes other calls of put.
func (c *cache[K, V]) put(key K, value V) {
	copied := map[K]V{}
	if entries := c.entries.Load(); entries != nil {
		copied = maps.Clone(*entries)
	}
	copied[key] = value
	c.entries.Store(&copied)
}

// A seriesTable has the series of each name. The zero value is empty.
type seriesTable struct {
	series cache[seriesKey, *series]

	mu    sync.Mutex // held to add a series
	names map[string]struct{}
}

type seriesKey struct {
	name            string
	attempt, shared bool
}

// keyOf returns the key of the series of an event.
func keyOf(e core.Event) seriesKey { return seriesKey{e.Name, e.Idempotent, e.Shared} }

// of returns the series of an event.
func (t *seriesTable) of(e core.Event) *series {
	if found, ok := t.series.get(keyOf(e)); ok {
		return found
	}
	return t.add(keyOf(e))
}

// add makes a series, unless there are too many names.
func (t *seriesTable) add(key seriesKey) *series {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.names[key.name]; !known && len(t.names) >= maxNames {
		key.name = otherName
	}
	if found, ok := t.series.get(key); ok {
		return found
	}
	if t.names == nil {
		t.names = map[string]struct{}{}
	}
	if key.name != otherName {
		t.names[key.name] = struct{}{}
	}
	made := newSeries(key)
	t.series.put(key, made)
	return made
}

// A series has the attributes of one kind of lock with one name.
type series struct {
	common []attribute.KeyValue
	plain  attributes  // the common ones alone
	zeroed atomic.Bool // recordZero was called for an attempt

	mu   sync.Mutex // held to add attributes
	more cache[detail, attributes]
}

// A detail is what the attributes of an instrument have besides the common ones.
type detail struct {
	what    attribute.KeyValue
	failure string // the error.type; "" is none
}

// attributes are a set of attributes, as the options of an instrument. They are made once,
// because that allocates.
type attributes struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func newSeries(key seriesKey) *series {
	s := &series{common: commonOf(key)}
	s.plain = newAttributes(s.common)
	return s
}

// with returns the attributes with a detail.
func (s *series) with(d detail) attributes {
	if found, ok := s.more.get(d); ok {
		return found
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.more.get(d); ok {
		return found
	}
	all := append([]attribute.KeyValue{}, s.common...)
	if d.what.Valid() {
		all = append(all, d.what)
	}
	if d.failure != "" {
		all = append(all, ErrorTypeKey.String(d.failure))
	}
	made := newAttributes(all)
	s.more.put(d, made)
	return made
}

func newAttributes(all []attribute.KeyValue) attributes {
	set := metric.WithAttributeSet(attribute.NewSet(all...))
	return attributes{add: []metric.AddOption{set}, record: []metric.RecordOption{set}}
}
