package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// In these histories a holder is granted a key at about 1 s, keeps it for 300 ms at least, and
// releases it after 10 ms.
func TestAReleasedKeyStaysLocked(t *testing.T) {
	t.Parallel()
	const begun, minHold, skew = 1000, 300, int64(clockSkew) / ms
	keeps := func(more func(*builder)) func(*builder) {
		return func(t *builder) {
			t.grant(1, "k", "a", begun, begun+2, 10).MinHold = minHold * ms
			t.release("a", begun+10, begun+12)
			more(t)
		}
	}
	granted := func(from, to int64) func(*builder) {
		return func(t *builder) {
			t.grant(2, "k", "b", from, to, 11).ValidUntil = (to + ttl) * ms
			t.release("b", to+1, to+2)
		}
	}
	try := func(from int64, outcome history.Outcome) func(*builder) {
		return func(t *builder) { t.call(2, history.Try, "k", from, from+2, outcome) }
	}
	report := []string{"linearizability", "min-hold"}
	runCases(t, []testCase{
		{"granted afterwards", keeps(granted(begun+5, begun+minHold)), nil},
		{"granted within the skew", keeps(granted(begun+5, begun+minHold-skew)), nil},
		{"granted before", keeps(granted(begun+5, begun+minHold-skew-1)), report},
		{"granted before to its own process", keeps(func(t *builder) {
			t.grant(1, "k", "b", begun+5, begun+20, 11)
			t.release("b", begun+21, begun+22)
		}), report},
		{"another key", keeps(func(t *builder) {
			t.grant(2, "l", "b", begun+5, begun+20, 11)
			t.release("b", begun+21, begun+22)
		}), nil},
		{"a holder that keeps nothing", keeps(func(t *builder) {
			t.lease("a").MinHold = 0
			granted(begun+5, begun+20)(t)
		}), nil},
		{"the holder had waited: its hold begins with the grant", func(t *builder) {
			op := t.grant(1, "k", "a", 1, begun+2, 10)
			op.MinHold, op.ValidUntil = minHold*ms, (begun+ttl)*ms
			t.release("a", begun+10, begun+12)
			granted(begun+5, begun+minHold-skew-1)(t)
		}, report},
		{"refused while the key stays locked", keeps(try(begun+100, history.Busy)), nil},
		{"released after that, and refused", func(t *builder) {
			t.grant(1, "k", "a", begun, begun+2, 10).MinHold = minHold * ms
			t.release("a", begun+2+minHold, begun+4+minHold)
			try(begun+2+minHold+1200, history.Busy)(t)
		}, []string{"linearizability"}},
		{"released after that, and granted at once", func(t *builder) {
			t.grant(1, "k", "a", begun, begun+2, 10).MinHold = minHold * ms
			t.release("a", begun+1+minHold, begun+3+minHold)
			granted(begun+5, begun+4+minHold)(t)
		}, nil},
		{"a release without a reply", func(t *builder) {
			t.grant(1, "k", "a", begun, begun+2, 10).MinHold = minHold * ms
			t.end(history.Release, "a", begun+10, begun+100, history.Unavailable).ReliedUntil = (begun + 10) * ms
			t.disrupt("a reply is lost", begun+5, begun+100)
			granted(begun+5, begun+20)(t)
		}, nil},
		{"the data was lost", keeps(func(t *builder) {
			t.loseData(begun+15, begun+18)
			granted(begun+16, begun+20)(t)
		}), nil},
		{"the holder died", func(t *builder) {
			t.grant(1, "k", "a", begun, begun+2, 10).MinHold = 2 * ttl * ms
			t.kill(1, begun+10)
			granted(begun+5, begun+ttl+20)(t)
		}, nil},
		{"an earlier holder that learned of its grant late", keeps(func(t *builder) {
			t.pause(2, 410, begun+15)
			t.grant(2, "k", "b", 400, begun+20, 9).ValidUntil = 900 * ms
			t.end(history.Release, "b", begun+21, begun+22, history.Lost).ReliedUntil = 900 * ms
		}), nil},
	})
}
