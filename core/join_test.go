package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// An error with several causes has a text of one line, and is each of them.
func TestErrorHasOneLine(t *testing.T) {
	t.Parallel()
	cause := errors.New("the request was dropped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := newLocker(t, newEmbedded(t)).Lock(ctx, "a")
	for _, want := range []error{context.Canceled, cause} {
		if !errors.Is(err, want) {
			t.Errorf("%v is not %v", err, want)
		}
	}
	if text := err.Error(); strings.Contains(text, "\n") || !strings.HasSuffix(text, "context canceled; the request was dropped") {
		t.Errorf("the text is %q", text)
	}
}
