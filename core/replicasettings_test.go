package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

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
	for name, opt := range map[string]core.Option{"WithReplicas is a setting": oneReplica(), "a TTL of at least": core.WithTTL(799 * time.Millisecond)} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, name) {
					t.Errorf("%s: panics with %q", name, text)
				}
			}()
			locks.With(opt)
		}()
	}
}
