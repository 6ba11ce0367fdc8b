package httpkey_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
)

// methodOf returns the method of a request.
func methodOf(r *http.Request) string { return r.Method }

// Only GET and HEAD share a key. A method in lower case is another method.
func TestSharedReads(t *testing.T) {
	t.Parallel()
	key := httpkey.SharedReads(methodOf, httpkey.Literal("k"))
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get", ""} {
		locks := locktest.New(t, core.WithWait(time.Minute))
		ctx, release, err := core.Enter(t.Context(), locks.Locker, &http.Request{Method: method}, key)
		if err != nil {
			t.Fatal(err)
		}
		if lease, _ := core.LeaseFromContext(ctx); lease.Shared() != (method == "GET" || method == "HEAD") {
			t.Errorf("%q: shared %v", method, lease.Shared())
		}
		release()
	}
}

// A middleware without a wait is found by its key function, for each type of request.
func TestCheckSharedReads(t *testing.T) {
	t.Parallel()
	checkSharedReads[*http.Request](t)
	checkSharedReads[interface{ Method() string }](t)
	checkSharedReads[struct{ method string }](t)
}

func checkSharedReads[R any](t *testing.T) {
	t.Helper()
	plain := core.Of(func(R) string { return "k" })
	reads := httpkey.SharedReads(func(R) string { return "GET" }, plain)
	locks := locktest.New(t)
	wait := locks.With(core.WithWait(time.Millisecond))
	for _, test := range []struct {
		name    string
		locks   *core.Locker
		keys    []core.KeyFunc[R]
		refused bool
	}{
		{"no wait", locks.Locker, []core.KeyFunc[R]{reads}, true},
		{"a wait of 0", locks.With(core.WithWait(0)), []core.KeyFunc[R]{reads}, true},
		{"the second key", locks.Locker, []core.KeyFunc[R]{plain, core.Func(reads)}, true},
		{"a wait", wait, []core.KeyFunc[R]{reads}, false},
		{"another function", locks.Locker, []core.KeyFunc[R]{plain, core.Shared(plain)}, false},
		{"inside another one", locks.Locker, []core.KeyFunc[R]{core.Named("n", reads)}, false}, // Enter refuses it
	} {
		if err := httpkey.CheckSharedReads("somelock", test.locks, test.keys); (err != nil) != test.refused {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
