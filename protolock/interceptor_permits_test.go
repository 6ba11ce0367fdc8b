package protolock_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/protolock"
)

// Permits and shared locks are those of core: a call runs beside others if its rule allows.
func TestAnnotatedPermitsAndSharedLocks(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	a := annotate(t, "", map[string]string{
		"Transfer": `lock { name: "permits" key { field: "account.id" } permits: 2 }`,
		"Settle":   `lock { name: "shared" key { field: "account.id" } shared: true }`,
	})
	client := serveAnnotated(t, &bank{}, []annotatedBank{a}, protolock.Must(protolock.New(a.descs())).ServerOptions(locks)...)[0]
	transfer := func() error { _, err := client.Transfer(within(t), transferOf("42")); return err }
	settle := func() error { _, err := client.Settle(within(t), transferOf("42")); return err }
	for name, test := range map[string]struct {
		key    string
		option core.Option // of the leases beside the call
		leases int
		call   func() error
		want   codes.Code
	}{
		"a permit is left":   {"permits:42", core.WithPermits(2), 1, transfer, codes.OK},
		"no permit is left":  {"permits:42", core.WithPermits(2), 2, transfer, codes.Aborted},
		"beside shared ones": {"shared:42", core.WithShared(true), 2, settle, codes.Unimplemented}, // it has run
		"beside one alone":   {"shared:42", core.WithShared(false), 1, settle, codes.Aborted},
	} {
		t.Run(name, func(t *testing.T) {
			for range test.leases {
				lease, err := locks.With(test.option).TryLock(t.Context(), test.key)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = lease.Release(context.WithoutCancel(t.Context())) }()
			}
			wantCode(t, test.call(), test.want)
		})
	}
}

// A source with Permits or Shared can be the whole key of a lock only, and several keys are no source.
func TestSourceThatSharesAPartIsRefused(t *testing.T) {
	t.Parallel()
	a := annotate(t, "", map[string]string{
		"Transfer": `lock { key { source: "account" } key { literal: "l" } }`,
		"Settle":   `idempotent { key { source: "account" } }`,
		"Balance":  `lock { key { source: "account" } }`,
	})
	const shares, several = "the source has Permits or Shared", "the source is several keys of core.All"
	for _, test := range []struct {
		key  grpclock.Key
		want map[string]string
	}{
		{literal.Shared(), map[string]string{"Transfer: lock 1": shares, "Settle: idempotent": shares}},
		{core.All(literal), map[string]string{"Transfer: lock 1": several, "Settle: idempotent": several, "Balance: lock 1": several}},
	} {
		_, err := protolock.New(a.descs(), protolock.Source("account", test.key))
		if err == nil || strings.Count(err.Error(), "\n") != len(test.want)-1 {
			t.Fatalf("%v: got %v", test.key, err)
		}
		for at, why := range test.want {
			if !strings.Contains(err.Error(), at+`: key: source "account": `+why) {
				t.Errorf("%v: got %v, want %s: %s", test.key, err, at, why)
			}
		}
	}
}
