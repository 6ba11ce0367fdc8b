package docs_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// valid are valid options of core, other than their defaults.
var valid = map[string]core.Option{
	"WithFingerprint":     core.WithFingerprint(func(string) ([]byte, error) { return nil, nil }),
	"WithFreeOnFailure":   core.WithFreeOnFailure(),
	"WithOptionalKey":     core.WithOptionalKey("X-Key"),
	"WithoutAnswer":       core.WithoutAnswer(),
	"WithoutFingerprint":  core.WithoutFingerprint(),
	"WithBusyStatus":      core.WithBusyStatus(429),
	"WithMaxBody":         core.WithMaxBody(1),
	"WithMethods":         core.WithMethods("PUT"),
	"WithProblemType":     core.WithProblemType("/errors/"),
	"WithReplayedHeaders": core.WithReplayedHeaders("X-Payment-Id"),
	"WithStored":          core.WithStored(func(int) bool { return true }),
	"WithUnknown":         core.WithUnknown(func(core.Failure) bool { return true }),
	"WithCaller":          core.WithCaller(true),
	"WithCommandTimeout":  core.WithCommandTimeout(time.Second),
	"WithFailFast":        core.WithFailFast(time.Second),
	"WithFailOpen":        core.WithFailOpen(true),
	"WithFencing":         core.WithFencing(true),
	"WithReference":       core.WithReference(func(context.Context) string { return "" }),
	"WithFirstShown":      core.WithFirstShown(true),
	"WithRerunUnknown":    core.WithRerunUnknown(true),
	"WithMaxHold":         core.WithMaxHold(time.Minute),
	"WithMaxAnswer":       core.WithMaxAnswer(1),
	"WithInstance":        core.WithInstance(core.Instance{Service: "payments"}),
	"WithMaxTotalWaiters": core.WithMaxTotalWaiters(1),
	"WithMaxWaiters":      core.WithMaxWaiters(1),
	"WithMinHold":         core.WithMinHold(time.Minute),
	"WithName":            core.WithName("payments"),
	"WithLogger":          core.WithLogger(nil),
	"WithObserver":        core.WithObserver(func(core.Event) {}),
	"WithPermits":         core.WithPermits(3),
	"WithOpenCommits":     core.WithOpenCommits(10, 1000),
	"WithPrefix":          core.WithPrefix("p:"),
	"WithQuarantine":      core.WithQuarantine(time.Minute),
	"WithRenewal":         core.WithRenewal(false),
	"WithReplicas":        core.WithReplicas(1, 10*time.Millisecond),
	"WithClientCancel":    core.WithClientCancel(true),
	"WithRetention":       core.WithRetention(time.Minute),
	"WithRetryAfter":      core.WithRetryAfter(time.Minute),
	"WithSealTimeout":     core.WithSealTimeout(time.Minute),
	"WithSealer":          core.WithSealer(adapter.Must(core.NewAESSealer("now", map[string][]byte{"now": make([]byte, 32)}))),
	"WithShared":          core.WithShared(true),
	"WithTTL":             core.WithTTL(time.Minute),
	"WithUnknownSearch":   core.WithUnknownSearch(time.Minute),
	"WithWait":            core.WithWait(time.Minute),
}

// The table says which functions accept an option of core. Here the functions are asked.
func TestOptionsAreAllowedWhereTheTableSays(t *testing.T) {
	t.Parallel()
	for _, section := range []string{"Locks", "The whole Locker", "Idempotent requests", "HTTP requests"} {
		for _, row := range rowsOf(t, section) {
			value, ok := valid[row[1]]
			if !ok {
				t.Errorf("this test has no value of %s", row[1])
				continue
			}
			accepted := map[[3]bool]string{
				{true, true, true}:   "everywhere",
				{true, false, true}:  "everywhere except `NewQuorum`",
				{true, true, false}:  "`New`, `NewQuorum`",
				{true, false, false}: "`New`",
				{false, true, false}: "`NewQuorum`",
			}
			if got, want := cmp.Or(row[4], "everywhere"), accepted[accepts(t, value)]; got != want {
				t.Errorf("docs/configuration.md says that %s is allowed %q, and it is %q", row[1], got, want)
			}
		}
	}
}

// accepts reports whether New, NewQuorum and With accept an option.
func accepts(t *testing.T, option core.Option) (by [3]bool) {
	t.Helper()
	var clients []redis.UniversalClient
	for range 3 {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // no command is sent
		t.Cleanup(func() { _ = client.Close() })
		clients = append(clients, client)
	}
	locks := core.Must(core.New(clients[0]))
	one, byNew := core.New(clients[0], valid["WithObserver"], option) // WithUnknownSearch needs an observer
	quorum, byQuorum := core.NewQuorum(clients, option)
	for _, l := range []*core.Locker{locks, one, quorum} {
		if l != nil {
			t.Cleanup(func() { _ = l.Close(t.Context()) })
		}
	}
	defer func() { by = [3]bool{byNew == nil, byQuorum == nil, recover() == nil} }()
	locks.With(option)
	return by
}
