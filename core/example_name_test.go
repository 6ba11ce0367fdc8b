package core_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/reqlock/reqlock/core"
)

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
	byOrder := core.Named("order", core.Of(func(o order) string { return o.id }))
	_, release, _ := core.Enter(ctx, locks, order{"7"}, byOrder)
	release()
	// Output:
	// acquired ""
	// acquired "nightly-report"
	// acquired "order"
}

// A function of your own stands beside other key functions.
func ExampleFunc() {
	type job struct{ id, queue string }
	byID := func(j job) (string, error) {
		if j.id == "0" {
			return "", errors.New("jobs count from 1")
		}
		return j.id, nil
	}
	byQueue := core.Of(func(j job) string { return j.queue })
	key := core.Named("job", core.First(core.Func(byID), byQueue))

	for _, j := range []job{{id: "7"}, {queue: "mails"}} {
		read, err := key.Read(j)
		fmt.Println(read.Raw(), read.Name(), err)
	}
	// Output:
	// job:7 job <nil>
	// job:mails job <nil>
}
