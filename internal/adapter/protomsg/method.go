package protomsg

import (
	"slices"
	"sync/atomic"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Methods are the methods of a ByMethod, and the tag of its key.
type Methods struct {
	Unary, Streams []string // full methods, "/pkg.Service/Method"
	// UnaryLocked and StreamsLocked say whether there is an interceptor for the unary
	// methods, and one for the streams.
	UnaryLocked, StreamsLocked atomic.Bool

	tags int // how many tags before this one are those of its rows
}

// ByMethod tags a key that is chosen by the method of the call.
func ByMethod[R any](key core.Key[R], m *Methods) core.Key[R] {
	m.tags = len(adapter.Tags(key))
	return adapter.Tag(key, m)
}

// All returns all methods.
func (m *Methods) All() []string { return slices.Concat(m.Unary, m.Streams) }

// HasInterceptor reports whether there is an interceptor for one of the two kinds.
func (m *Methods) HasInterceptor() bool { return m.UnaryLocked.Load() || m.StreamsLocked.Load() }

// MethodsOf returns the methods of each ByMethod of which a key is made.
func MethodsOf[R any](key core.Key[R]) (found []*Methods) {
	for _, tag := range adapter.Tags(key) {
		if m, ok := tag.(*Methods); ok && !slices.Contains(found, m) {
			found = append(found, m)
		}
	}
	return found
}
