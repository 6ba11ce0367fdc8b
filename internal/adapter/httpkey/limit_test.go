package httpkey_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
)

// The limit is that of the innermost middleware, also if it has the default. A body that no key has
// read is the server's own again.
func TestLimitIsThatOfTheMiddleware(t *testing.T) {
	t.Parallel()
	r, _ := request(t.Context(), strings.NewReader(`{"id":"a"}`))
	source, id := r.Body, httpkey.JSONField("id")
	key, err := within(9, httpkey.Literal("k"))(r)
	check(t, key.Raw(), err, "k", nil)
	if r.Body != source {
		t.Error("a body that no key has read stays wrapped")
	}
	for _, test := range []struct {
		limit int64
		want  error
	}{{9, core.ErrBodyTooLarge}, {10, nil}, {9, core.ErrBodyTooLarge}, {0, nil}} {
		if _, err := within(test.limit, id)(r); !errors.Is(err, test.want) {
			t.Errorf("limit %d: %v", test.limit, err)
		}
	}
}
