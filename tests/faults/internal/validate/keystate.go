package validate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// A keyState is the state of a key on a server, and the earliest possible time.
type keyState struct {
	out   []holder // one exclusive lease, or any number of shared ones, by their time of free
	fence int64    // the last one
	// phase is set if the last fencing number is that of shared leases. All shared leases
	// that overlap have one number.
	phase bool
	done  int // the steps of leases with fencing numbers
	now   int64
}

// A holder is a lease of an episode that is out.
type holder struct {
	episode string
	lease   string // "" if it has ended, and its successor was not yet granted
	shared  bool
	free    int64 // the earliest time at which it may have ended without a known end
}

// keyModel returns the model of a key for Porcupine: the leases that are out, and the last
// fencing number.
func keyModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return keyState{} },
		Step: func(state, input, _ any) (bool, any) {
			return state.(keyState).step(input.(*step))
		},
		Equal:                     func(a, b any) bool { return a.(keyState).equals(b.(keyState)) },
		DescribeOperation:         func(input, _ any) string { return input.(*step).String() },
		DescribeState:             func(state any) string { return state.(keyState).String() },
		DescribeOperationMetadata: describeStep,
	}
}

// equals reports whether two states are the same.
func (k keyState) equals(other keyState) bool {
	return k.fence == other.fence && k.phase == other.phase && k.done == other.done && k.now == other.now && slices.Equal(k.out, other.out)
}

// String describes the state in a picture.
func (k keyState) String() string {
	switch {
	case len(k.out) == 0:
		return fmt.Sprintf("free, last fence %d", k.fence)
	case !k.out[0].shared:
		return fmt.Sprintf("%s holds it, fence %d", k.out[0].lease, k.fence)
	}
	text := "shared by"
	for _, one := range k.out {
		text += " " + cmp.Or(one.lease, "a lease that is handed off")
	}
	return fmt.Sprintf("%s, fence %d", text, k.fence)
}

// step reports whether a step is possible now, and returns the next state.
func (k keyState) step(next *step) (bool, any) {
	k.now = max(k.now, next.earliest())
	at := slices.IndexFunc(k.out, func(one holder) bool { return one.lease == next.lease })
	switch next.kind {
	case granting:
		if !k.grant(next) {
			return false, nil
		}
	case ending:
		if at < 0 {
			return false, nil
		}
		k.out = slices.Clone(k.out)
		if next.handsOff {
			k.out[at].lease = ""
		} else {
			k.out = slices.Delete(k.out, at, at+1)
		}
	case holding:
		if at < 0 {
			return false, nil
		}
	case refusing:
		if k.excess(next) <= 0 {
			return false, nil
		}
	}
	if next.fence != 0 {
		k.done++
	}
	return k.now <= next.op.Return, k
}

// excess returns how many of the leases must end before another one can be granted.
func (k keyState) excess(next *step) int {
	if len(k.out) > 0 && !k.out[0].shared {
		return 1
	}
	return len(k.out) - capacity(next.op) + 1
}

// grant grants a lease. It ends the leases that may have ended first, and only as many as
// must have ended. It reports false if the lease or its fencing number is not possible.
func (k *keyState) grant(next *step) bool {
	if next.handedOff && !k.takeOver(next) {
		return false
	}
	must := max(0, k.excess(next))
	if next.handedOff && next.op.IsShared() {
		must = 0
	}
	if next.fence != 0 {
		joins := next.op.IsShared() && k.phase && next.fence == k.fence
		if next.fence <= k.fence && !joins {
			return false
		}
		if next.fence > k.fence {
			if k.done < next.before {
				return false
			}
			must = len(k.out) // a new number begins a new phase
		}
		k.fence, k.phase = next.fence, next.op.IsShared()
	}
	if must > 0 {
		k.now = max(k.now, k.out[must-1].free)
	}
	one := holder{next.episode, next.lease, next.op.IsShared(), next.free}
	at, _ := slices.BinarySearchFunc(k.out[must:], one, compareHolders)
	k.out = slices.Insert(slices.Clone(k.out[must:]), at, one)
	return true
}

// takeOver removes the lease that is handed off. It reports false if that lease is not out.
func (k *keyState) takeOver(next *step) bool {
	at := slices.IndexFunc(k.out, func(one holder) bool { return one.episode == next.episode })
	if at < 0 {
		return false
	}
	if k.out[at].lease != "" {
		k.now = max(k.now, k.out[at].free)
	}
	k.out = slices.Delete(slices.Clone(k.out), at, at+1)
	return true
}

// compareHolders orders holders by their time of free.
func compareHolders(a, b holder) int {
	return cmp.Or(cmp.Compare(a.free, b.free), cmp.Compare(a.episode, b.episode))
}
