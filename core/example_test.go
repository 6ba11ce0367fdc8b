package core_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// newExample returns a Locker on an embedded Redis, and a function that closes both.
func newExample(opts ...core.Option) (*core.Locker, func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	// The command timeout has room for a busy machine.
	locks := core.Must(core.New(rdb, append(opts, core.WithCommandTimeout(2*time.Second))...))
	return locks, func() {
		_ = locks.Close(context.Background())
		_ = rdb.Close()
		server.Close()
	}
}

func ExampleLocker_Do() {
	locks, end := newExample()
	defer end()

	err := locks.Do(context.Background(), "account:42", func(context.Context) error {
		fmt.Println("only this function works on account 42")
		return nil
	})
	fmt.Println(err)
	// Output:
	// only this function works on account 42
	// <nil>
}

func ExampleLocker_TryLock() {
	locks, end := newExample()
	defer end()
	ctx := context.Background()

	lease, err := locks.TryLock(ctx, "report:2026")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = lease.Release(ctx) }()

	_, err = locks.TryLock(ctx, "report:2026")
	fmt.Println(err, errors.Is(err, core.ErrBusy))
	// Output: reqlock: busy true
}

func ExampleLocker_With() {
	locks, end := newExample()
	defer end()
	ctx := context.Background()

	patient := locks.With(core.WithWait(20*time.Millisecond), core.WithTTL(time.Minute))
	lease, _ := locks.Lock(ctx, "k")
	defer func() { _ = lease.Release(ctx) }()

	_, err := patient.Lock(ctx, "k")
	fmt.Println(err)
	// Output: reqlock: wait timed out
}

func ExampleJoin() {
	type order struct{ tenant, id string }
	key := core.Join(
		core.Getter(func(o order) string { return o.tenant }).Describe("tenant()", "the tenant"),
		core.Getter(func(o order) string { return o.id }).Describe("id()", "the id"),
	).Named("order")

	read, _ := key.Read(order{"acme", "7"})
	fmt.Println(read.Raw(), read.Name())
	_, err := key.Read(order{"acme", ""})
	fmt.Println(err)
	// Output:
	// order:4:acme1:7 order
	// reqlock: no key: id() is empty
}

func ExampleEnter() {
	locks, end := newExample()
	defer end()
	type message struct{ user, text string }
	byUser := core.Getter(func(m message) string { return m.user })

	handle := func(ctx context.Context, m message) {
		ctx, release, err := core.Enter(ctx, locks, m, byUser)
		if err != nil {
			refusal, _ := core.RefusalOf(err)
			fmt.Println(refusal.HTTP, refusal.Code)
			return
		}
		defer release()
		lease, _ := core.LeaseFromContext(ctx)
		fmt.Println(lease.Key(), "says", m.text)
	}

	handle(context.Background(), message{"ann", "hello"})
	handle(context.Background(), message{"", "hello"})
	// Output:
	// ann says hello
	// 400 no_key
}

// A program checks Redis when it starts.
func ExampleLocker_Check() {
	locks, end := newExample()
	defer end()

	if err := locks.Check(context.Background()); err != nil {
		fmt.Println(err) // what is wrong, and what to do
		return
	}
	fmt.Println("ready")
	// Output: ready
}

// Events name the kind of thing that is locked, so a metric needs no key.
func ExampleWithName() {
	locks, end := newExample(core.WithObserver(func(e core.Event) {
		if e.Kind == core.Acquired {
			fmt.Printf("acquired %q\n", e.Name)
		}
	}))
	defer end()
	ctx := context.Background()
	work := func(context.Context) error { return nil }

	_ = locks.Do(ctx, "report:2026-11-23", work)
	_ = locks.With(core.WithName("nightly-report")).Do(ctx, "report:2026-11-23", work)

	type order struct{ id string }
	byOrder := core.Getter(func(o order) string { return o.id }).Named("order")
	_, release, _ := core.Enter(ctx, locks, order{"7"}, byOrder)
	release()
	// Output:
	// acquired ""
	// acquired "nightly-report"
	// acquired "order"
}

// A function of your own stands beside other keys.
func ExampleFunc() {
	type job struct{ id, queue string }
	byID := func(j job) (string, error) {
		if j.id == "0" {
			return "", errors.New("jobs count from 1")
		}
		return j.id, nil
	}
	byQueue := core.Getter(func(j job) string { return j.queue })
	key := core.First(core.KeyOf(byID), byQueue).Named("job")

	for _, j := range []job{{id: "7"}, {queue: "mails"}} {
		read, err := key.Read(j)
		fmt.Println(read.Raw(), read.Name(), err)
	}
	// Output:
	// job:7 job <nil>
	// job:mails job <nil>
}

// An answer that was sealed with the old key opens after the new one has become the current key.
func ExampleNewAESSealer() {
	locks, end := newExample()
	defer end()
	ctx := context.Background()
	keys := map[string][]byte{"2026-08": make([]byte, 32), "2026-11": make([]byte, 32)} // from your secret store
	for _, key := range keys {
		_, _ = rand.Read(key)
	}

	before, err := core.NewAESSealer("2026-08", keys)
	if err != nil {
		fmt.Println(err)
		return
	}
	attempt, err := locks.With(core.WithSealer(before)).Begin(ctx, "payment 7", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = attempt.Commit(ctx, []byte("paid"))

	after, err := core.NewAESSealer("2026-11", keys)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := locks.With(core.WithSealer(after)).Begin(ctx, "payment 7", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, replayed := again.Replay()
	fmt.Println(string(answer), replayed)
	// Output: paid true
}
