package registration_test

import (
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// The key functions of several Also add up, also those of a Locker and of its view. Those of
// another adapter do not count.
func TestAlsoAddsUp(t *testing.T) {
	t.Parallel()
	key := func(r string) (string, error) { return r, nil }
	two := registration.Also[string]("somelock", []func(string) (string, error){key, key})
	locks := locktest.New(t, two).Locker
	if n := len(registration.AlsoOf[string]("somelock", locks.With(two, two))); n != 6 {
		t.Errorf("%d key functions", n)
	}
	if n := len(registration.AlsoOf[string]("somelock", locks)) + len(registration.AlsoOf[string]("otherlock", locks)); n != 2 {
		t.Errorf("the Locker has %d key functions", n)
	}
}

func TestPanics(t *testing.T) {
	t.Parallel()
	for want, register := range map[string]func(){
		"reqlock: somelock: no":       func() { registration.Must("somelock", false, "no") },
		"Also needs a key function":   func() { registration.Also[string]("somelock", []core.KeyFunc[string](nil)) },
		"Also got a nil key function": func() { registration.Also[string]("somelock", []core.KeyFunc[string]{nil}) },
	} {
		adaptertest.WantPanic(t, register, want)
	}
}
