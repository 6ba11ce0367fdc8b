package check

import (
	"testing"

	"github.com/reqlock/reqlock/faults/internal/history"
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
		{"unfenced, lost after a loss of data", func(t *tale) {
			t.lose(1, 2)
			losing(false)(t)
		}, nil},
		{"unfenced, lost by the careless", func(t *tale) {
			t.Careless = true
			losing(false)(t)
		}, nil},
	})
	if h := tell(losing(false)); LostUpdates(h, false) != 1 || LostUpdates(h, true) != 0 {
		t.Errorf("%d lost without fences, %d with them; want 1 and 0", LostUpdates(h, false), LostUpdates(h, true))
	}
}
