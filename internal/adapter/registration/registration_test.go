package registration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

func TestMain(m *testing.M) { suite.Main(m) }

const adapter = registration.Adapter("somelock")

type (
	config  struct{ set []string }
	another struct{}
	option  interface{ ReqlockOption() }
)

// An ownOption is the option of an adapter that is not one of this repository.
type ownOption struct{}

func (ownOption) ReqlockOption() {}

func set(name string) option {
	return registration.NewSetting(adapter, name, func(c *config) { c.set = append(c.set, name) })
}

func TestApplySortsInOrder(t *testing.T) {
	t.Parallel()
	c := &config{}
	wait, ttl := core.WithWait(time.Second), core.WithTTL(time.Second)
	rest := registration.Apply(adapter, c, []option{set("a"), wait, set("b"), ttl})
	if got := strings.Join(c.set, ""); got != "ab" {
		t.Errorf("set %q", got)
	}
	if len(rest) != 2 {
		t.Errorf("%d options of core", len(rest))
	}
}

func TestPanics(t *testing.T) {
	t.Parallel()
	ok := func(string) (string, error) { return "", nil }
	foreign := registration.NewSetting("otherlock", "WithMaxBody", func(*another) {})
	for name, test := range map[string]struct {
		register func()
		want     string
	}{
		"must":       {func() { adapter.Must(false, "no") }, "reqlock: somelock: no"},
		"nil option": {func() { registration.Apply(adapter, &config{}, []option{nil}) }, "reqlock: somelock: an option is nil"},
		"another's": {
			func() { registration.Apply(adapter, &config{}, []option{foreign}) },
			"reqlock: somelock: otherlock.WithMaxBody is an option of another adapter: write options of somelock and core",
		},
		"a user's": {
			func() { registration.Apply(adapter, &config{}, []option{ownOption{}}) },
			"reqlock: somelock: registration_test.ownOption is an option of another adapter",
		},
		"no key function": {func() { registration.KeysOf[string](adapter, "Also", []core.KeyFunc[string](nil)) }, "Also needs a key function"},
		"nil key function": {
			func() { registration.KeysOf[string](adapter, "Also", []core.KeyFunc[string]{core.Func(ok), nil}) },
			"Also got a nil key function",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, test.want) {
					t.Errorf("panic %q, want %q", got, test.want)
				}
			}()
			test.register()
		})
	}
}
