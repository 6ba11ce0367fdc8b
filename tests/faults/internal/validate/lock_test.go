package validate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestLinearizability(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{"one after the other", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.release("a", 20, 22)
			t.grant(2, "k", "b", 2, 23, 11)
			t.release("b", 30, 31)
		}, nil},
		{"granted while another holds it", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.grant(2, "k", "b", 5, 10, 11)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
		}, []string{"mutual-exclusion", "linearizability"}},
		{"granted after a release was called whose reply is lost", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.disrupt("cut", 15, 60)
			t.end(history.Release, "a", 20, 50, history.Unavailable).ReliedUntil = 20 * ms
			t.grant(2, "k", "b", 5, 21, 11)
			t.release("b", 30, 31)
		}, nil},
		{"granted before a release was called whose reply is lost", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.disrupt("cut", 15, 60)
			t.grant(2, "k", "b", 5, 19, 11)
			t.end(history.Release, "a", 20, 50, history.Unavailable).ReliedUntil = 10 * ms
			t.release("b", 30, 31)
		}, []string{"linearizability"}},
		{"granted after the one before expired", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.kill(1, 50)
			t.grant(2, "k", "b", 60, 502, 11)
			t.release("b", 510, 511)
		}, nil},
		{"granted before the one before, who died, expired", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.kill(1, 50)
			t.grant(2, "k", "b", 60, 499, 11)
			t.release("b", 510, 511)
		}, []string{"linearizability"}},
		{"granted before the one before, which was extended, expired", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.end(history.Extend, "a", 400, 401, history.Done).ValidUntil = 900 * ms
			t.kill(1, 450)
			t.grant(2, "k", "b", 60, 700, 11)
			t.release("b", 710, 711)
		}, []string{"linearizability"}},
		{"extended after it was released", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.grant(2, "k", "b", 410, 420, 11)
			t.end(history.Extend, "a", 430, 440, history.Done)
			t.release("b", 450, 451)
			t.kill(1, 405)
		}, []string{"linearizability"}},
		{"released, though it was another's", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.grant(2, "k", "b", 5, 300, 11)
			t.release("a", 310, 320).ReliedUntil = 250 * ms
			t.release("b", 330, 340)
		}, []string{"linearizability"}},
		{"a release that came after it expired is not known to have freed it", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.grant(2, "k", "b", 490, 502, 11)
			t.release("a", 503, 520)
			t.release("b", 530, 531)
		}, nil},
		{"released twice", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.release("a", 10, 12)
			t.release("a", 20, 22)
			t.grant(2, "k", "b", 13, 15, 11)
			t.release("b", 30, 31)
		}, nil},
		{"passed on within a process", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.grant(1, "k", "b", 2, 22, 11).Episode = "a"
			t.release("a", 20, 21)
			t.release("b", 30, 31)
		}, nil},
		{"passed on within a process, and not to the one who asks elsewhere", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.release("a", 20, 21)
			t.grant(1, "k", "b", 2, 22, 11).Episode = "a"
			t.grant(2, "k", "c", 2, 25, 12)
			t.release("b", 30, 31)
			t.release("c", 40, 41)
		}, []string{"mutual-exclusion", "linearizability"}},
		{"granted with the fence of another, at the same time", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.release("a", 20, 22)
			t.grant(2, "k", "b", 2, 23, 10)
			t.release("b", 30, 31)
		}, []string{"linearizability"}},
		{"two keys at once", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.grant(2, "l", "b", 2, 4, 10)
			t.release("a", 30, 31)
			t.release("b", 30, 31)
		}, nil},
		{"a lease and an attempt of one name at once", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.begin(2, "k", "b", 1, 3, 1, history.Reject)
			t.commit("b", "x", 30, 31, history.Done)
			t.release("a", 30, 31)
		}, nil},
	})
}

func TestRefusedTry(t *testing.T) {
	t.Parallel()
	try := func(t *builder, process int, from, to int64) {
		t.call(process, history.Try, "k", from, to, history.Busy)
	}
	runCases(t, []testCase{
		{"while another holds it", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			try(t, 2, 4, 5)
			t.release("a", 30, 31)
		}, nil},
		{"a free key that was never held", func(t *builder) {
			try(t, 2, 4000, 4001)
		}, []string{"linearizability"}},
		{"a key that was freed long ago", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.release("a", 30, 31)
			try(t, 2, 4000, 4001)
		}, []string{"linearizability"}},
		{"a key that was freed just now, perhaps for a waiter that had gone", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.call(3, history.Lock, "k", 5, 30, history.WaitTimeout).Wait = 25 * ms
			t.release("a", 30, 31)
			try(t, 2, 31+claim, 32+claim)
		}, nil},
		{"a key whose waiter gave up long ago", func(t *builder) {
			t.call(3, history.Lock, "k", 5, 30, history.WaitTimeout).Wait = 25 * ms
			try(t, 2, 31+ttl/2, 32+ttl/2)
		}, []string{"linearizability"}},
		{"a key whose waiter gave up during a disruption", func(t *builder) {
			t.disrupt(LostReply+"is lost", 20, 21)
			t.call(3, history.Lock, "k", 5, 30, history.WaitTimeout).Wait = 25 * ms
			try(t, 2, 30+ttl+claim, 31+ttl+claim)
		}, nil},
		{"a key that others had before and after", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.release("a", 30, 31)
			try(t, 2, 50, 51)
			t.grant(1, "k", "b", 60, 61, 11)
			t.release("b", 70, 71)
		}, []string{"linearizability"}},
		{"a key that one who waits in the same process asks for, and another gets", func(t *builder) {
			t.grant(2, "k", "b", 40, 70, 12)
			try(t, 2, 50, 51)
			t.grant(1, "k", "a", 52, 53, 11)
			t.release("a", 60, 61)
			t.release("b", 80, 81)
		}, nil},
		{"a key that one who waits in another process asks for, and gets later", func(t *builder) {
			t.grant(3, "k", "b", 40, 70, 12)
			try(t, 2, 50, 51)
			t.grant(1, "k", "a", 52, 53, 11)
			t.release("a", 60, 61)
			t.release("b", 80, 81)
		}, []string{"linearizability"}},
		{"a key that was freed just now, and that has no waiters", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.release("a", 30, 31)
			try(t, 2, 31+claim, 32+claim)
		}, []string{"linearizability"}},
		{"a key that its owner, or who asks at the same time, may have", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.release("a", 30, 31)
			t.call(3, history.Lock, "k", 40, 60, history.WaitTimeout).Wait = 20 * ms
			try(t, 2, 50, 51)
		}, nil},
		{"a free key, since a reply was lost", func(t *builder) {
			t.disrupt("a reply is lost", 3000, 4050)
			try(t, 2, 4100, 4101)
		}, []string{"linearizability"}},
		{"a key that one who died may have had", func(t *builder) {
			t.call(1, history.Lock, "k", 1, 0, history.None)
			t.kill(1, 4000)
			try(t, 2, 4100, 4101)
		}, nil},
		{"a key that one who died cannot have any more", func(t *builder) {
			t.call(1, history.Lock, "k", 1, 0, history.None)
			t.kill(1, 40)
			try(t, 2, 4100, 4101)
		}, []string{"linearizability"}},
		{"a key of which the network may hold a command", func(t *builder) {
			t.disrupt("delay", 3000, 4050)
			try(t, 2, 4100, 4101)
		}, nil},
		{"a key that a holder kept alive for long", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			try(t, 2, 40_000, 40_001)
			t.release("a", 50_000, 50_001).ValidUntil = 50_400 * ms
		}, nil},
	})
}

func TestLinearizabilityAfterLoss(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{"granted after a loss, while the stale holder continues and hands it off", func(t *builder) {
			t.loseData(100, 200)
			t.grant(1, "k", "a", 1, 3, 10)
			t.grant(1, "k", "b", 5, 301, 11).Episode = "a"
			t.grant(2, "k", "c", 201, 210, 20)
			t.release("a", 300, 300)
			t.release("c", 500, 510)
			t.release("b", 600, 610)
		}, nil},
		{"granted before a loss, twice", func(t *builder) {
			t.loseData(100, 200)
			t.grant(1, "k", "a", 1, 3, 10)
			t.grant(2, "k", "c", 21, 30, 20)
			t.release("c", 31, 32)
			t.release("a", 90, 91)
		}, []string{"mutual-exclusion", "linearizability"}},
		{"granted after a loss, twice", func(t *builder) {
			t.loseData(100, 200)
			t.grant(1, "k", "a", 201, 203, 10)
			t.grant(2, "k", "c", 221, 230, 20)
			t.release("c", 231, 232)
			t.release("a", 290, 291)
		}, []string{"mutual-exclusion", "linearizability"}},
		{"asked for before the end of a loss, and granted after it, twice", func(t *builder) {
			t.loseData(100, 200)
			t.grant(1, "k", "a", 150, 203, 10)
			t.grant(2, "k", "c", 221, 230, 20)
			t.release("c", 231, 232)
			t.release("a", 290, 291)
		}, nil},
		{"a later loss makes new stale leases", func(t *builder) {
			t.loseData(100, 200)
			t.loseData(240, 250)
			t.grant(1, "k", "a", 201, 203, 10)
			t.grant(2, "k", "c", 261, 270, 20)
			t.release("c", 281, 282)
			t.release("a", 290, 291)
		}, nil},
		{"a fence after a loss that is not above that of a stale lease", func(t *builder) {
			t.loseData(100, 200)
			t.grant(1, "k", "a", 1, 3, 10)
			t.grant(2, "k", "c", 201, 210, 9)
			t.release("c", 231, 232)
			t.release("a", 290, 291)
		}, []string{"fences", "linearizability"}},
	})
}

func TestAPictureIsDrawn(t *testing.T) {
	t.Parallel()
	found := All(build(func(t *builder) {
		t.grant(1, "k", "first-lease", 1, 3, 10)
		t.disrupt("cut-off", 1, 2)
		t.kill(1, 50)
		t.grant(2, "k", "second-lease", 60, 70, 11)
		t.kill(2, 80)
	}))
	if len(found) != 1 || found[0].Picture == nil {
		t.Fatalf("found %v; want one with a picture", found)
	}
	if !strings.Contains(found[0].String(), "second-lease") {
		t.Errorf("%s does not name what does not fit", found[0])
	}
	path := filepath.Join(t.TempDir(), "picture.html")
	if err := found[0].Picture(path); err != nil {
		t.Fatal(err)
	}
	drawn, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first-lease", "second-lease", "cut-off", "killed"} {
		if !strings.Contains(string(drawn), want) {
			t.Errorf("the picture has no %q", want)
		}
	}
}
