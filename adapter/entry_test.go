package adapter

import (
	"context"
	"net/http"
	"testing"

	"github.com/reqlock/reqlock/core/locktest"
)

// A sliceContext is a context that cannot be compared.
type sliceContext struct {
	context.Context
	_ []int
}

// A request that runs as without the middleware is the same request, whatever its context is.
func TestSkippedRequestIsTheSame(t *testing.T) {
	t.Parallel()
	m := newEndpoint(t, locktest.New(t).Locker)
	r := payment(t, "k", "").WithContext(sliceContext{Context: t.Context()})
	r.Method = http.MethodPut
	entry, x, err := m.Begin(r.Context(), r)
	defer entry.Leave()
	if x != nil || err != nil || entry.Request(r) != r {
		t.Errorf("%v, %v: another request", x, err)
	}
}
