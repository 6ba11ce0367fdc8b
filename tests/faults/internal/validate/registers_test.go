package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// write adds an accepted write that is based on a version.
func (t *builder) write(key string, fenced bool, version int64) *history.Access {
	at := int64(len(t.Accesses)+1) * ms
	t.Accesses = append(t.Accesses, history.Access{At: at, Key: key, Fenced: fenced, Write: true, Version: version})
	return &t.Accesses[len(t.Accesses)-1]
}

func TestRegisters(t *testing.T) {
	t.Parallel()
	losing := func(fenced bool) func(*builder) {
		return func(t *builder) {
			t.write("k", fenced, 0)
			t.write("k", fenced, 1)
			t.write("k", fenced, 1)
			t.write("k", fenced, 3)
		}
	}
	runCases(t, []testCase{
		{"each on the one before", func(t *builder) {
			t.write("k", true, 0)
			t.write("l", true, 0)
			t.write("k", false, 0)
			t.write("k", true, 1)
			t.write("k", true, 0).Refused = true
			t.write("k", false, 1)
			t.write("k", true, 0).Write = false
			t.write("k", true, 2)
		}, nil},
		{"fenced, lost", losing(true), []string{"fenced-updates"}},
		{"fenced, on a version that was not written", func(t *builder) { t.write("k", true, 7) }, []string{"fenced-updates"}},
		{"fenced, lost after a loss of data", func(t *builder) {
			t.loseData(1, 2)
			losing(true)(t)
		}, []string{"fenced-updates"}},
		{"fenced, lost by careless clients", func(t *builder) {
			t.Careless = true
			losing(true)(t)
		}, []string{"fenced-updates"}},
		{"unfenced, lost", losing(false), []string{"unfenced-updates"}},
		{"unfenced, lost during a disruption", func(t *builder) {
			t.disrupt("cut", 1, 2)
			losing(false)(t)
		}, []string{"unfenced-updates"}},
		{"unfenced, lost after a loss of data, without a stale lease", func(t *builder) {
			t.loseData(1, 2)
			losing(false)(t)
		}, []string{"unfenced-updates"}},
		{"unfenced, lost by careless clients", func(t *builder) {
			t.Careless = true
			losing(false)(t)
		}, nil},
	})
	if h := build(losing(false)); LostUpdates(h, false) != 1 || LostUpdates(h, true) != 0 {
		t.Errorf("%d lost without fences, %d with them; want 1 and 0", LostUpdates(h, false), LostUpdates(h, true))
	}
}

// In these histories a write replaces the write of another client.
func TestUnfencedWritesOverOthers(t *testing.T) {
	t.Parallel()
	story := func(looked, at int64, more func(*builder)) func(*builder) {
		return func(t *builder) {
			write := func(process int, at, fence, looked int64) {
				a := t.write("k", false, 0)
				a.Process, a.Client, a.At, a.Fence, a.CheckedAt = process, process, at*ms, fence, looked*ms
			}
			t.disrupt("cut", 1, 3000)
			t.grant(1, "k", "a", 1000, 1001, 1)
			more(t)
			t.grant(2, "k", "b", 1600, 1601, 2)
			write(2, 1603, 2, 1602)
			write(1, at, 1, looked)
			t.release("b", 1604, 1605)
			t.end(history.Release, "a", 2002, 2003, history.Lost).ReliedUntil = (1000 + ttl) * ms
			t.leaseEnd("a", 1000+ttl)
		}
	}
	report := []string{"unfenced-updates"}
	runCases(t, []testCase{
		{"late", story(1400, 2000, func(*builder) {}), report},
		{"it was paused since it checked", story(1400, 2000, func(t *builder) { t.pause(1, 1410, 1990) }), nil},
		{"it was paused, and did not check", story(0, 2000, func(t *builder) { t.pause(1, 1410, 1990) }), report},
		{"it was paused before it checked", story(1400, 2000, func(t *builder) { t.pause(1, 1100, 1390) }), report},
		{"another was paused", story(1400, 2000, func(t *builder) { t.pause(2, 1410, 1420) }), report},
		{"the machine stalled since it checked", story(1400, 2000, func(t *builder) { t.disrupt(Stalled, 1410, 1420) }), nil},
		{"the machine stalled before", story(1400, 2000, func(t *builder) { t.disrupt(Stalled, 1300, 1310) }), report},
		{"a stale lease", story(1400, 2000, func(t *builder) { t.loseData(1100, 1110) }), nil},
		{"a stale lease of another key", story(1400, 2000, func(t *builder) { t.loseData(1100, 1110, "l") }), report},
		{"others had lost before", story(1400, 2000, func(t *builder) { t.loseData(900, 910) }), report},
		{"others have lost since", story(1400, 2000, func(t *builder) { t.loseData(2100, 2110) }), report},
	})
}
