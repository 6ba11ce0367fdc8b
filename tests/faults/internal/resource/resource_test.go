package resource

import (
	"slices"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// dial returns a user of the resource.
func dial(t *testing.T, r *Resource, process, client int) *User {
	t.Helper()
	u, err := Dial(t.Context(), r.Addr(), process, client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Close() })
	return u
}

func TestAFencedRegisterRefusesEarlierFences(t *testing.T) {
	type step struct {
		write          bool
		fence, version int64 // a write is based on the version, a read returns it
		refused        bool
	}
	for name, steps := range map[string][]step{
		"one after the other": {
			{false, 1, 0, false},
			{true, 1, 0, false},
			{false, 2, 1, false},
			{true, 2, 1, false},
			{false, 2, 2, false},
		},
		"a write after a later write": {
			{false, 1, 0, false},
			{false, 2, 0, false},
			{true, 2, 0, false},
			{true, 1, 0, true},
			{false, 2, 1, false},
		},
		"a write after a later read": {
			{false, 1, 0, false},
			{false, 2, 0, false},
			{true, 1, 0, true},
			{true, 2, 0, false},
		},
		"a read after a later write": {
			{true, 2, 0, false},
			{false, 1, 1, true},
			{false, 2, 1, false},
		},
		"a refused access raises nothing": {
			{false, 3, 0, false},
			{false, 2, 0, true},
			{true, 3, 0, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := Serve(t)
			u := dial(t, r, 0, 0)
			for i, s := range steps {
				var ok bool
				var err error
				version := s.version
				if s.write {
					ok, err = u.Write("k", true, s.fence, s.version, 0)
				} else {
					version, ok, err = u.Read("k", true, s.fence)
				}
				if err != nil || ok == s.refused || version != s.version {
					t.Errorf("step %d, %+v: version %d, accepted %v, %v", i, s, version, ok, err)
				}
			}
		})
	}
}

func TestAnUnfencedRegisterTakesAll(t *testing.T) {
	r := Serve(t)
	u := dial(t, r, 0, 0)
	for _, fence := range []int64{5, 1, 3} {
		if ok, err := u.Write("k", false, fence, 0, 0); !ok || err != nil {
			t.Errorf("fence %d: %v, %v", fence, ok, err)
		}
	}
	if version, ok, err := u.Read("k", false, 1); version != 3 || !ok || err != nil {
		t.Errorf("version %d, %v, %v", version, ok, err)
	}
	if version, _, _ := u.Read("k", true, 1); version != 0 {
		t.Errorf("the fenced one has version %d", version)
	}
	if version, _, _ := u.Read("another", false, 1); version != 0 {
		t.Errorf("that of another key has version %d", version)
	}
}

func TestAccessesAndEffectsAreRecorded(t *testing.T) {
	r := Serve(t)
	a, b := dial(t, r, 1, 10), dial(t, r, 2, 20)
	_, _, _ = a.Read("k", true, 7)
	_, _ = b.Write("k", true, 6, 3, 0)
	_, _ = b.Write("k", false, 6, 3, 7)
	_ = b.Charge("pay", 2, "2/5")
	_ = a.Charge("pay", 1, "1/1")

	accesses := r.Accesses()
	if !slices.IsSortedFunc(accesses, func(a, b history.Access) int { return int(a.At - b.At) }) || accesses[0].At == 0 {
		t.Errorf("not in order: %+v", accesses)
	}
	for i := range accesses {
		accesses[i].At = 0
	}
	if want := []history.Access{
		{Process: 1, Client: 10, Key: "k", Fenced: true, Fence: 7},
		{Process: 2, Client: 20, Key: "k", Fenced: true, Fence: 6, Write: true, Version: 3, Refused: true},
		{Process: 2, Client: 20, Key: "k", Fence: 6, Write: true, Version: 3, CheckedAt: 7},
	}; !slices.Equal(accesses, want) {
		t.Errorf("%+v", accesses)
	}
	effects := r.Effects()
	for i := range effects {
		if effects[i].At == 0 {
			t.Error("an effect has no time")
		}
		effects[i].At = 0
	}
	if want := []history.Effect{
		{Process: 2, Client: 20, Key: "pay", Number: 2, Lease: "2/5"},
		{Process: 1, Client: 10, Key: "pay", Number: 1, Lease: "1/1"},
	}; !slices.Equal(effects, want) {
		t.Errorf("%+v", effects)
	}
}

func TestSeveralUsersGetAPayment(t *testing.T) {
	r := Serve(t)
	given := make([]int, 3*usersPerPayment)
	var group sync.WaitGroup
	for i := range given {
		u := dial(t, r, 0, i)
		group.Go(func() {
			var err error
			if given[i], err = u.Payment(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	slices.Sort(given)
	for i, n := range given {
		if n != i/usersPerPayment {
			t.Fatalf("given were %v", given)
		}
	}
}

func TestTheResourceIsClosed(t *testing.T) {
	var u *User
	t.Run("open", func(t *testing.T) {
		r := Serve(t)
		var err error
		if u, err = Dial(t.Context(), r.Addr(), 0, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := u.Payment(); err != nil {
			t.Fatal(err)
		}
	})
	defer func() { _ = u.Close() }()
	if _, err := u.Payment(); err == nil {
		t.Error("no error")
	}
}
