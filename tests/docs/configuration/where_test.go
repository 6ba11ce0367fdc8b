package configuration_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/docs/configuration"
)

// valid are valid options of core, other than their defaults.
func valid() map[string]core.Option {
	return map[string]core.Option{
		"WithCaller":          core.WithCaller(true),
		"WithCommandTimeout":  core.WithCommandTimeout(time.Second),
		"WithFailFast":        core.WithFailFast(time.Second),
		"WithFailOpen":        core.WithFailOpen(true),
		"WithFencing":         core.WithFencing(true),
		"WithInterrupted":     core.WithInterrupted(core.Rerun),
		"WithMaxHold":         core.WithMaxHold(time.Minute),
		"WithMaxRecord":       core.WithMaxRecord(1),
		"WithMaxTotalWaiters": core.WithMaxTotalWaiters(1),
		"WithMaxWaiters":      core.WithMaxWaiters(1),
		"WithMinHold":         core.WithMinHold(time.Minute),
		"WithName":            core.WithName("payments"),
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
		"WithShared":          core.WithShared(true),
		"WithTTL":             core.WithTTL(time.Minute),
		"WithWait":            core.WithWait(time.Minute),
	}
}

// The tables say which functions accept an option of core; here the functions are asked.
func TestOptionsAreAllowedWhereTheTablesSay(t *testing.T) {
	options, err := configuration.Options(root, "core", "Option")
	if err != nil {
		t.Fatal(err)
	}
	for _, option := range options {
		value, ok := valid()[option.Name]
		if !ok {
			t.Errorf("this test has no value of %s", option.Name)
			continue
		}
		byNew, byQuorum, byWith := accepts(t, value)
		var got string
		switch {
		case byNew && byQuorum && byWith:
			got = "everywhere"
		case byNew && byWith:
			got = "everywhere except `NewQuorum`"
		case byNew && byQuorum:
			got = "`New`, `NewQuorum`"
		case byNew:
			got = "`New`"
		case byQuorum:
			got = "`NewQuorum`"
		}
		if got != option.Where {
			t.Errorf("%s is allowed: %q, and its comment says: %q", option.Name, got, option.Where)
		}
	}
}

// accepts reports whether New, NewQuorum and With accept an option.
func accepts(t *testing.T, option core.Option) (byNew, byQuorum, byWith bool) {
	t.Helper()
	var clients []redis.UniversalClient
	for _, addr := range []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"} {
		client := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = client.Close() })
		clients = append(clients, client)
	}
	made := func(locks *core.Locker, err error) bool {
		if err == nil {
			t.Cleanup(func() { _ = locks.Close(t.Context()) })
		}
		return err == nil
	}
	byNew = made(core.New(clients[0], option))
	byQuorum = made(core.NewQuorum(clients, option))
	locks := core.Must(core.New(clients[0]))
	t.Cleanup(func() { _ = locks.Close(t.Context()) })
	defer func() { byWith = recover() == nil }()
	locks.With(option)
	return byNew, byQuorum, byWith
}
