package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// newT returns the t of the examples, which represents the *testing.T of your test.
func newT() *recorder { return &recorder{} }

// A transfer locks the account that it takes money from.
type transfer struct{ From, To string }

var fromAccount = core.Getter(func(r transfer) string { return r.From }).Named("account")

// serve represents your handler behind the middleware of your framework.
func serve(ctx context.Context, l *core.Locker, r transfer) int {
	ctx, release, err := core.Enter(ctx, l, r, fromAccount)
	if err != nil {
		refusal, _ := core.RefusalOf(err)
		return refusal.HTTP
	}
	defer release()
	return move(ctx)
}

func move(context.Context) int { return 200 }

// A handler is refused once another process has used up all permits.
func ExampleLocks_Hold() {
	t := newT()
	defer t.end()

	locks := locktest.New(t, core.WithPermits(2)) // as the service takes them
	r := transfer{From: "42", To: "7"}

	first := locks.Hold("account:42")
	fmt.Println("one of two:", serve(context.Background(), locks.Locker, r))
	second := locks.Hold("account:42")
	fmt.Println("two of two:", serve(context.Background(), locks.Locker, r))
	first()
	second()

	// Output:
	// one of two: 200
	// two of two: 409
}

// A handler without WithWait answers 409 while another process holds its key, and 503 while
// Redis is unavailable.
func ExampleNew() {
	t := newT()
	defer t.end()

	locks := locktest.New(t)
	r := transfer{From: "42", To: "7"}

	release := locktest.HoldFor(locks, fromAccount, r)
	fmt.Println("held:", serve(context.Background(), locks.Locker, r))
	release()
	fmt.Println("free:", serve(context.Background(), locks.Locker, r))
	locks.Down()
	fmt.Println("Redis down:", serve(context.Background(), locks.Locker, r))
	locks.Up()
	fmt.Println("Redis up:", serve(context.Background(), locks.Locker, r))

	// Output:
	// held: 409
	// free: 200
	// Redis down: 503
	// Redis up: 200
}

// A handler with WithWait waits until the key is released.
func ExampleLocks_AwaitWaiting() {
	t := newT()
	defer t.end()

	locks := locktest.New(t, core.WithWait(5*time.Second))
	r := transfer{From: "42", To: "7"}
	release := locktest.HoldFor(locks, fromAccount, r)

	status := make(chan int)
	go func() { status <- serve(context.Background(), locks.Locker, r) }()

	locks.AwaitWaiting("account:42", 1)
	fmt.Println("waiting:", locks.Waiting("account:42"))
	release()
	fmt.Println("released:", <-status)
	fmt.Println("waiting:", locks.Waiting("account:42"))

	// Output:
	// waiting: 1
	// released: 200
	// waiting: 0
}

// The context of a handler ends when its lease is lost.
func ExampleLocks_Expire() {
	t := newT()
	defer t.end()

	locks := locktest.New(t, core.WithTTL(time.Second))
	err := locks.Do(context.Background(), "account:42", func(ctx context.Context) error {
		locks.Expire("account:42")
		<-ctx.Done() // at the next renewal, a third of a second after the lock was taken
		return context.Cause(ctx)
	})
	fmt.Println(errors.Is(err, core.ErrLost), err)

	// Output: true reqlock: lease lost
}

// In a bubble of testing/synctest, a long TTL takes no real time.
func TestExampleOfBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := locktest.New(t, core.WithTTL(time.Minute))
		locks.Abandon("account:42", time.Minute) // by a process that crashed

		r := transfer{From: "42", To: "7"}
		if status := serve(t.Context(), locks.Locker, r); status != 409 {
			t.Errorf("before the TTL is over: %d", status)
		}
		time.Sleep(time.Minute)
		if status := serve(t.Context(), locks.Locker, r); status != 200 {
			t.Errorf("after the TTL is over: %d", status)
		}
	})
}
