package validate

import "testing"

func TestStaleHolders(t *testing.T) {
	t.Parallel()
	late := ttl/3 + ttl/4*2 + schedulingDelay.Milliseconds()
	// story builds a lease whose key is lost and granted to another client.
	story := func(until int64, more func(*builder)) func(*builder) {
		return func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.loseData(100, 110)
			t.grant(2, "k", "b", 120, 130, 20)
			more(t)
			t.release("b", 140, 141)
			end := t.release("a", until, until+1)
			end.ValidUntil, end.ReliedUntil = (until+ttl)*ms, until*ms
		}
	}
	nothing := func(*builder) {}
	runCases(t, []testCase{
		{"it goes on until its validity ends", story(130+late, nothing), nil},
		{"it goes on for ever", story(131+late, nothing), []string{"stale-holder"}},
		{"it was extended", story(131+late, func(t *builder) { t.end("extend", "a", 50, 60, "done") }), nil},
		{"the machine stalled", story(131+late, func(t *builder) { t.disrupt(Stalled+" machine", 200, 300) }), nil},
		{"no other client was granted the key", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.loseData(100, 110)
			end := t.release("a", 4000, 4001)
			end.ValidUntil, end.ReliedUntil = 4400*ms, 4000*ms
		}, nil},
		{"another was granted the key before the loss was over", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.loseData(100, 5000)
			t.grant(2, "k", "b", 120, 130, 20)
			t.release("b", 140, 141)
			end := t.release("a", 4000, 4001)
			end.ValidUntil, end.ReliedUntil = 4400*ms, 4000*ms
		}, nil},
	})
}
