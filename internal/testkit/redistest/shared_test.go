package redistest

import (
	"strings"
	"testing"
)

func TestTestsShareOneDeploymentOfAKind(t *testing.T) {
	t.Parallel()
	Program(t) // skips the test where there is no server
	var first *Deployment
	t.Run("the first test starts it", func(t *testing.T) { first = Shared(t, OnServer) })
	client := first.Client(t)
	key := OwnPrefix() + "k"
	if err := client.Set(t.Context(), key, "v", 0).Err(); err != nil {
		t.Fatalf("the deployment ended with the test that started it: %v", err)
	}
	second := Shared(t, OnServer)
	if second != first {
		t.Fatal("another test has another deployment")
	}
	if value := second.Client(t).Get(t.Context(), key).Val(); value != "v" {
		t.Errorf("got %q", value)
	}
}

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

func TestOwnPrefixesDiffer(t *testing.T) {
	t.Parallel()
	if a, b := OwnPrefix(), OwnPrefix(); a == b || !strings.HasPrefix(a, "reqlock:") {
		t.Errorf("got %q and %q", a, b)
	}
}
