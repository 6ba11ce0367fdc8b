package grpclock_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// Permits and shared locks are those of core: a call runs beside others if its rule allows.
func TestAnnotatedPermitsAndSharedLocks(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	a := annotate(t, "", map[string]string{
		"Transfer": `lock { name: "permits" key { field: "account.id" } permits: 2 }`,
		"Settle":   `lock { name: "shared" key { field: "account.id" } shared: true }`,
	})
	client := serveAnnotated(t, &bank{}, []annotatedBank{a}, grpclock.Annotated(a.descs()).ServerOptions(locks)...)[0]
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

// A source that shares its key can be the whole key of a lock only.
func TestSourceThatSharesAPartIsRefused(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	a := annotate(t, "", map[string]string{
		"Transfer": `lock { key { source: "account" } key { literal: "l" } }`,
		"Settle":   `idempotent { key { source: "account" } }`,
	})
	rules := grpclock.Annotated(a.descs(), grpclock.Source("account", core.Shared(literal)))
	client := serveAnnotated(t, &bank{}, []annotatedBank{a}, rules.ServerOptions(locks)...)[0]
	_, transferred := client.Transfer(within(t), transferOf("42"))
	_, settled := client.Settle(within(t), transferOf("42"))
	for _, err := range []error{transferred, settled} {
		if wantCode(t, err, codes.Internal); reasonOf(err) != "KEY_ERROR" {
			t.Errorf("got %v", err)
		}
	}
}
