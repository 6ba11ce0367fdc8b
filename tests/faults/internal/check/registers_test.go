package check

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// write adds an accepted write, which builds on a version.
func (t *tale) write(key string, fenced bool, version int64) *history.Access {
	at := int64(len(t.Accesses)+1) * ms
	t.Accesses = append(t.Accesses, history.Access{At: at, Key: key, Fenced: fenced, Write: true, Version: version})
	return &t.Accesses[len(t.Accesses)-1]
}

func TestRegisters(t *testing.T) {
	losing := func(fenced bool) func(*tale) {
		return func(t *tale) {
			t.write("k", fenced, 0)
			t.write("k", fenced, 1)
			t.write("k", fenced, 1)
			t.write("k", fenced, 3)
		}
	}
	run(t, []testCase{
		{"each on the one before", func(t *tale) {
			t.write("k", true, 0)
			t.write("l", true, 0)
			t.write("k", false, 0)
			t.write("k", true, 1)
			t.write("k", true, 0).Refused = true
			t.write("k", false, 1)
			t.write("k", true, 0).Write = false
			t.write("k", true, 2)
		}, nil},
		{"fenced, lost", losing(true), []string{"fenced"}},
		{"fenced, on what nobody wrote", func(t *tale) { t.write("k", true, 7) }, []string{"fenced"}},
		{"fenced, lost after a loss of data", func(t *tale) {
			t.lose(1, 2)
			losing(true)(t)
		}, []string{"fenced"}},
		{"fenced, lost by the careless", func(t *tale) {
			t.Careless = true
			losing(true)(t)
		}, []string{"fenced"}},
		{"unfenced, lost", losing(false), []string{"unfenced"}},
		{"unfenced, lost in trouble", func(t *tale) {
			t.trouble("cut", 1, 2)
			losing(false)(t)
		}, []string{"unfenced"}},
		{"unfenced, lost after a loss of data, by nobody's ghost", func(t *tale) {
			t.lose(1, 2)
			losing(false)(t)
		}, []string{"unfenced"}},
		{"unfenced, lost by the careless", func(t *tale) {
			t.Careless = true
			losing(false)(t)
		}, nil},
	})
	if h := tell(losing(false)); LostUpdates(h, false) != 1 || LostUpdates(h, true) != 0 {
		t.Errorf("%d lost without fences, %d with them; want 1 and 0", LostUpdates(h, false), LostUpdates(h, true))
	}
}

// In these tales one writes over what another wrote in between.
func TestUnfencedWritesBesideOthers(t *testing.T) {
	story := func(looked, at int64, more func(*tale)) func(*tale) {
		return func(t *tale) {
			write := func(process int, at, fence, looked int64) {
				a := t.write("k", false, 0)
				a.Process, a.Client, a.At, a.Fence, a.Looked = process, process, at*ms, fence, looked*ms
			}
			t.trouble("cut", 1, 3000)
			t.grant(1, "k", "a", 1000, 1001, 1)
			more(t)
			t.grant(2, "k", "b", 1600, 1601, 2)
			write(2, 1603, 2, 1602)
			write(1, at, 1, looked)
			t.release("b", 1604, 1605)
			t.end(history.Release, "a", 2002, 2003, history.Lost).Believed = (1000 + ttl) * ms
			t.told("a", 1000+ttl)
		}
	}
	guilty := []string{"unfenced"}
	run(t, []testCase{
		{"late", story(1400, 2000, func(*tale) {}), guilty},
		{"it stood still since it looked", story(1400, 2000, func(t *tale) { t.stand(1, 1410, 1990) }), nil},
		{"it stood still, and did not look", story(0, 2000, func(t *tale) { t.stand(1, 1410, 1990) }), guilty},
		{"it stood still before it looked", story(1400, 2000, func(t *tale) { t.stand(1, 1100, 1390) }), guilty},
		{"another stood still", story(1400, 2000, func(t *tale) { t.stand(2, 1410, 1420) }), guilty},
		{"the machine stalled since it looked", story(1400, 2000, func(t *tale) { t.trouble(Stalled, 1410, 1420) }), nil},
		{"the machine stalled before", story(1400, 2000, func(t *tale) { t.trouble(Stalled, 1300, 1310) }), guilty},
		{"a ghost", story(1400, 2000, func(t *tale) { t.lose(1100, 1110) }), nil},
		{"a ghost of another key", story(1400, 2000, func(t *tale) { t.lose(1100, 1110, "l") }), guilty},
		{"others had lost before", story(1400, 2000, func(t *tale) { t.lose(900, 910) }), guilty},
		{"others have lost since", story(1400, 2000, func(t *tale) { t.lose(2100, 2110) }), guilty},
	})
}
