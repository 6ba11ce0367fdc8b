package core_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

func TestErrorNamesTheBadSetting(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	for setting, opt := range map[string]core.Option{
		"WithTTL":                              core.WithTTL(99 * time.Millisecond),
		"WithTTL ":                             core.WithTTL(-time.Second),
		"WithWait":                             core.WithWait(-1),
		"WithMaxHold":                          core.WithMaxHold(-time.Second),
		"WithRetryAfter":                       core.WithRetryAfter(0),
		"WithCommandTimeout":                   core.WithCommandTimeout(0),
		"WithMaxWaiters":                       core.WithMaxWaiters(0),
		"WithMaxTotalWaiters":                  core.WithMaxTotalWaiters(-1),
		"WithOpenCommits":                      core.WithOpenCommits(-1, 1),
		"WithOpenCommits ":                     core.WithOpenCommits(1, -1),
		"WithFailFast":                         core.WithFailFast(time.Microsecond),
		"WithFailFast ":                        core.WithFailFast(-time.Second),
		"WithUnknownSearch: 999ms is below 1s": core.WithUnknownSearch(999 * time.Millisecond),
		"WithUnknownSearch: 25h0m0s is above 24h0m0s":                core.WithUnknownSearch(25 * time.Hour),
		`WithInstance: Service has 129 bytes: use at most 128`:       core.WithInstance(core.Instance{Service: strings.Repeat("s", 129)}),
		`WithInstance: Host is "a\nb": use printable characters`:     core.WithInstance(core.Instance{Host: "a\nb"}),
		`WithInstance: Version is "v\xff": use printable characters`: core.WithInstance(core.Instance{Version: "v\xff"}),
		"WithInstance: the PID -1 is negative":                       core.WithInstance(core.Instance{PID: -1}),
		"WithMinHold":                                                core.WithMinHold(time.Microsecond),
		"WithMinHold ":                                               core.WithMinHold(-time.Second),
		"WithObserver":                                               core.WithObserver(nil),
		"WithPrefix":                                                 core.WithPrefix("{half"),
		"WithPrefix ":                                                core.WithPrefix("half}"),
		"WithPrefix  ":                                               core.WithPrefix("{}"),
		"WithName":                                                   core.WithName(""),
		"WithName ":                                                  core.WithName("1a"),
		"WithName  ":                                                 core.WithName("a b"),
		"WithName   ":                                                core.WithName("a:b"),
		"WithName    ":                                               core.WithName("ä"),
		"option":                                                     nil,
	} {
		if l, err := core.New(rdb, opt); l != nil || err == nil || !strings.Contains(err.Error(), strings.TrimSpace(setting)) ||
			!strings.HasPrefix(err.Error(), "reqlock: ") {
			t.Errorf("%s: %v", setting, err)
		}
	}
	for _, none := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil)} {
		if l, err := core.New(none); l != nil || err == nil || !strings.Contains(err.Error(), "client") {
			t.Errorf("nil client: %v", err)
		}
	}
}

// A duration without a unit counts nanoseconds. The error says so.
func TestDurationWithoutUnitIsRefused(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	for setting, of := range map[string]func(time.Duration) core.Option{
		"WithTTL":            core.WithTTL,
		"WithWait":           core.WithWait,
		"WithMaxHold":        core.WithMaxHold,
		"WithRetryAfter":     core.WithRetryAfter,
		"WithRetention":      core.WithRetention,
		"WithCommandTimeout": core.WithCommandTimeout,
		"WithQuarantine":     core.WithQuarantine,
		"WithReplicas":       func(d time.Duration) core.Option { return core.WithReplicas(1, d) },
	} {
		for _, d := range []time.Duration{1, 5, time.Millisecond - 1} {
			_, err := core.New(rdb, of(d))
			if err == nil || !strings.HasPrefix(err.Error(), "reqlock: "+setting+": "+d.String()+" is below ") ||
				!strings.Contains(err.Error(), "5*time.Second") {
				t.Errorf("%s(%d): %v", setting, d, err)
			}
		}
	}
	for _, opt := range []core.Option{
		core.WithWait(0), core.WithMaxHold(0), core.WithWait(time.Millisecond), core.WithMaxHold(time.Millisecond), core.WithRetryAfter(time.Millisecond),
	} {
		noError(t, errorOf(core.New(rdb, opt)))
	}
	lease := lock(t, newLocker(t, rdb), "k")
	if err := lease.Extend(t.Context(), 5); err == nil || !strings.Contains(err.Error(), "5*time.Second") {
		t.Errorf("Extend: %v", err)
	}
	release(t, lease)
}

// With panics with the error that CheckOptions returns. It names the function that accepts the option.
func TestViewRefusesBadSettings(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t), core.WithFencing(true))
	for want, opt := range map[string]core.Option{
		"WithTTL: 1ms is below 100ms": core.WithTTL(time.Millisecond),
		"WithWait: ":                  core.WithWait(-1),
		"WithPermits: WithFencing needs numbers that rise":                                               core.WithPermits(2),
		"WithPrefix is a setting of the whole Locker, and none of a view: give it to New or NewQuorum":   core.WithPrefix("other:"),
		"WithQuarantine is a setting of the whole Locker, and none of a view: give it to NewQuorum":      core.WithQuarantine(time.Minute),
		"WithReplicas is a setting of the whole Locker, and none of a view: give it to New":              core.WithReplicas(1, time.Second),
		"WithUnknownSearch is a setting of the whole Locker, and none of a view: give it to New":         core.WithUnknownSearch(time.Second),
		"WithInstance is a setting of the whole Locker, and none of a view: give it to New or NewQuorum": core.WithInstance(core.Instance{}),
		"WithCommandTimeout is a setting":                                                                core.WithCommandTimeout(time.Second),
		"WithMaxTotalWaiters is a setting":                                                               core.WithMaxTotalWaiters(1),
		"WithOpenCommits is a setting":                                                                   core.WithOpenCommits(1, 1),
		"WithFailFast is a setting":                                                                      core.WithFailFast(time.Second),
		"WithObserver is a setting":                                                                      core.WithObserver(func(core.Event) {}),
		"With: an option is nil":                                                                         nil,
	} {
		err, panicked := adapter.CheckOptions(locks, opt), panicOf(func() { locks.With(opt) })
		if err == nil || err.Error() != panicked || !strings.HasPrefix(panicked, "reqlock: "+want) {
			t.Errorf("CheckOptions: %v; With panics with %q; want %s", err, panicked, want)
		}
	}
	noError(t, adapter.CheckOptions(locks, core.WithShared(true), core.WithWait(0)))
	if panicOf(func() { core.Must(core.New(nil)) }) == "" {
		t.Error("Must does not panic")
	}
}

func TestBoundsOfDurations(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	const (
		year = 365 * 24 * time.Hour
		most = time.Duration(math.MaxInt64)
	)
	for setting, set := range map[string]struct {
		option      func(time.Duration) core.Option
		least, most time.Duration
	}{
		"WithTTL":            {core.WithTTL, 100 * time.Millisecond, 10 * year},
		"WithWait":           {core.WithWait, 0, most},
		"WithMaxHold":        {core.WithMaxHold, time.Millisecond, most},
		"WithRetryAfter":     {core.WithRetryAfter, time.Millisecond, 24 * time.Hour},
		"WithRetention":      {core.WithRetention, time.Second, most},
		"WithCommandTimeout": {core.WithCommandTimeout, time.Millisecond, 10 * year},
	} {
		for _, d := range []time.Duration{set.least, set.most} {
			if _, err := core.New(rdb, set.option(d)); err != nil {
				t.Errorf("%s(%v) is refused: %v", setting, d, err)
			}
		}
		for d, bound := range map[time.Duration]time.Duration{set.least - 1: set.least, set.most + 1: set.most} {
			if setting == "WithMaxHold" && d > 0 || setting == "WithWait" {
				bound = max(bound, time.Millisecond)
			}
			if d == math.MinInt64 { // most+1 has overflowed: no duration is above this bound
				continue
			}
			_, err := core.New(rdb, set.option(d))
			if err == nil || !strings.HasPrefix(err.Error(), "reqlock: "+setting+": ") {
				t.Errorf("%s(%v): %v", setting, d, err)
			} else if d > 0 && !strings.Contains(err.Error(), bound.String()) {
				t.Errorf("%v does not name the bound %v", err, bound)
			}
		}
	}
}

// An adapter that reads settings from elsewhere gets the errors of New and of Named.
func TestAdaptersCanCheckSettings(t *testing.T) {
	t.Parallel()
	noError(t, adapter.CheckOptions(nil, core.WithTTL(time.Second), core.WithWait(0)))
	for want, err := range map[string]error{
		"reqlock: WithTTL: 1ms is below 100ms":                        adapter.CheckOptions(nil, core.WithWait(0), core.WithTTL(time.Millisecond)),
		"reqlock: CheckOptions: an option is nil":                     adapter.CheckOptions(nil, nil),
		"reqlock: Named cannot use the name of idempotent requests":   adapter.CheckName("i"),
		"reqlock: Named needs a name of letters, digits, '-', '_', '": adapter.CheckName("4you"),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	noError(t, adapter.CheckName("account/v1"))
}

func TestSettingsOfReplicas(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{})
	brief := redis.NewClient(&redis.Options{ReadTimeout: 100 * time.Millisecond})
	t.Cleanup(func() { _, _ = rdb.Close(), brief.Close() })
	for name, test := range map[string]struct {
		rdb  redis.UniversalClient
		opts []core.Option
		want string // in the error; "" if the settings are accepted
	}{
		"no replicas":                      {rdb, []core.Option{core.WithReplicas(0, time.Second)}, "0 is below 1"},
		"no time":                          {rdb, []core.Option{core.WithReplicas(1, time.Millisecond-1)}, "below 1ms"},
		"a quarter of the command timeout": {rdb, []core.Option{core.WithReplicas(1, 125*time.Millisecond)}, ""},
		"more than a quarter of the command timeout": {rdb, []core.Option{core.WithReplicas(1, 126*time.Millisecond)}, "WithCommandTimeout"},
		"a quarter of a longer command timeout": {rdb, []core.Option{
			core.WithReplicas(1, time.Second), core.WithCommandTimeout(4 * time.Second), core.WithTTL(16 * time.Second),
		}, ""},
		"a sixteenth of the TTL":           {rdb, []core.Option{oneReplica(), core.WithTTL(800 * time.Millisecond)}, ""},
		"more than a sixteenth of the TTL": {rdb, []core.Option{core.WithTTL(799 * time.Millisecond), oneReplica()}, "a TTL of at least 800ms"},
		"the longest duration":             {rdb, []core.Option{core.WithReplicas(1, 1<<62)}, "WithCommandTimeout"},
		"a wrapped client":                 {struct{ redis.UniversalClient }{rdb}, []core.Option{oneReplica()}, "does not show what it wraps"},
		"a short ReadTimeout":              {brief, []core.Option{oneReplica()}, "ReadTimeout"},
	} {
		locks, err := core.New(test.rdb, test.opts...)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want == "":
			_ = locks.Close(t.Context())
		case err == nil || locks != nil || !strings.HasPrefix(err.Error(), "reqlock: WithReplicas: ") || !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: %v", name, err)
		}
	}
	locks := newLocker(t, rdb, oneReplica())
	if text := panicOf(func() { locks.With(core.WithTTL(799 * time.Millisecond)) }); !strings.Contains(text, "a TTL of at least") {
		t.Errorf("With panics with %q", text)
	}
}
