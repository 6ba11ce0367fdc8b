package redistest

import (
	"strings"
	"testing"
)

func TestFailureOfASharedServerPanics(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	lifetime := &processLifetime{TB: r, starting: true}
	if ended := watch(t, func(testing.TB) { lifetime.Fatalf("no port is free") }); r.ended != "fatal: no port is free" {
		t.Errorf("while it starts: got %q, %q", ended, r.ended)
	}
	lifetime.starting = false
	defer func() {
		if text, ok := recover().(string); !ok || !strings.Contains(text, "no answer") {
			t.Errorf("afterwards: got %q", text)
		}
	}()
	lifetime.Errorf("no answer")
}
