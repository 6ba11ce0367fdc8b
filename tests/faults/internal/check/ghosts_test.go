package check

import "testing"

func TestGhosts(t *testing.T) {
	late := ttl/3 + ttl/4*2 + lateness.Milliseconds()
	// story is one of a lease whose key is lost, and granted to another.
	story := func(until int64, more func(*tale)) func(*tale) {
		return func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.lose(100, 110)
			t.grant(2, "k", "b", 120, 130, 20)
			more(t)
			t.release("b", 140, 141)
			end := t.release("a", until, until+1)
			end.ValidUntil, end.Believed = (until+ttl)*ms, until*ms
		}
	}
	nothing := func(*tale) {}
	run(t, []testCase{
		{"it goes on until its validity ends", story(130+late, nothing), nil},
		{"it goes on for ever", story(131+late, nothing), []string{"ghosts"}},
		{"it was extended", story(131+late, func(t *tale) { t.end("extend", "a", 50, 60, "done") }), nil},
		{"the machine stalled", story(131+late, func(t *tale) { t.trouble(Stalled+" machine", 200, 300) }), nil},
		{"nobody else was granted the key", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.lose(100, 110)
			end := t.release("a", 4000, 4001)
			end.ValidUntil, end.Believed = 4400*ms, 4000*ms
		}, nil},
		{"another was granted the key before the loss was over", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.lose(100, 5000)
			t.grant(2, "k", "b", 120, 130, 20)
			t.release("b", 140, 141)
			end := t.release("a", 4000, 4001)
			end.ValidUntil, end.Believed = 4400*ms, 4000*ms
		}, nil},
	})
}
