package core_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/core"
)

// At most two exports of a tenant run at the same time, in all processes.
func ExampleKey_Permits() {
	locks, end := newExample()
	defer end()
	ctx := context.Background()

	type export struct{ tenant string }
	key := core.Getter(func(e export) string { return e.tenant }).Named("exports").Permits(2)
	for range 3 {
		_, release, err := core.Enter(ctx, locks, export{"acme"}, key)
		defer release()
		fmt.Println("acme:", err)
	}
	_, release, err := core.Enter(ctx, locks, export{"umbrella"}, key)
	defer release()
	fmt.Println("umbrella:", err)
	// Output:
	// acme: <nil>
	// acme: <nil>
	// acme: reqlock: busy
	// umbrella: <nil>
}

// Requests that only read run beside each other, and a request that writes runs alone.
func ExampleKey_SharedWhen() {
	locks, end := newExample()
	defer end()
	ctx := context.Background()
	locks = locks.With(core.WithWait(200 * time.Millisecond)) // a writer needs a wait

	type request struct{ account, action string }
	reads := func(r request) bool { return r.action == "read" }
	key := core.Getter(func(r request) string { return r.account }).Named("account").SharedWhen(reads)

	_, first, _ := core.Enter(ctx, locks, request{"42", "read"}, key)
	_, second, err := core.Enter(ctx, locks, request{"42", "read"}, key)
	fmt.Println("another reader:", err)
	_, refused, err := core.Enter(ctx, locks, request{"42", "write"}, key)
	refused()
	fmt.Println("a writer beside them:", err)
	first()
	second()
	_, third, err := core.Enter(ctx, locks, request{"42", "write"}, key)
	fmt.Println("a writer after them:", err)
	third()
	// Output:
	// another reader: <nil>
	// a writer beside them: reqlock: wait timed out
	// a writer after them: <nil>
}

// A view takes permits or shared leases of each key.
func ExampleWithPermits() {
	locks, end := newExample()
	defer end()
	ctx := context.Background()

	two := locks.With(core.WithPermits(2))
	first, _ := two.TryLock(ctx, "printer")
	second, _ := two.TryLock(ctx, "printer")
	_, err := two.TryLock(ctx, "printer")
	fmt.Println(first.Shared(), second.Shared(), errors.Is(err, core.ErrBusy))

	_ = first.Release(ctx)
	third, err := two.TryLock(ctx, "printer")
	fmt.Println(third.Shared(), err)
	_ = second.Release(ctx)
	_ = third.Release(ctx)
	// Output:
	// true true true
	// true <nil>
}
