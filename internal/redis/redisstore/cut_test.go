package redisstore

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A cut is what gets through of a batch of so many commands: the first bytes of
// them, and the first bytes of the replies. See redistest.Proxy.CutBatch.
type cut struct{ size, commands, replies int }

// round makes the bids as one batch, and cuts it, and those that follow with
// what has to be sent again. It returns what became of each.
//
// Each bid must be told its fate, once, and the server's state must be the one
// of that fate. So the key carries our token if, and only if, we were told so or
// that it is not known; a key that was released is never ours; a token stands in
// line once.
func (r *ring) round(t *testing.T, cuts ...cut) [][]redistest.CutCommand {
	t.Helper()
	requests := r.requests()
	r.put(t, requests)
	happened := make([]<-chan []redistest.CutCommand, len(cuts))
	for i, c := range cuts {
		happened[i] = r.proxy.CutBatch(func(command []string) bool {
			ofBatch := keyOf(command) != ""
			if ofBatch && i == 0 {
				r.begin(t)
			}
			return ofBatch
		}, c.size, c.commands, c.replies)
	}
	asked := time.Now()
	answers := r.gather(t, requests)
	got := make([]told, len(answers))
	for i := range answers {
		got[i] = within(t, r.bids[i].key, answers[i])
	}
	batches, legs := make([][]redistest.CutCommand, len(cuts)), make(map[string][]leg)
	for i := range cuts {
		batches[i] = within(t, "the batch", happened[i])
		for _, p := range batches[i] {
			key := keyOf(p.Command)
			legs[key] = append(legs[key], leg{p, slices.ContainsFunc(batches[i], unheard)})
		}
	}
	r.fail(t, false)
	found := r.look(t)
	for i := range r.bids {
		b := &r.bids[i]
		r.check(t, b, b.fates(legs[b.key], r.fails), got[i], asked, &requests[i], found[i])
	}
	r.works(t)
	for i := range answers {
		if len(answers[i]) > 0 {
			t.Errorf("%s is told twice", r.bids[i].key)
		}
	}
	if t.Failed() {
		t.Fatalf("cut at %+v", cuts) // the other rounds would say the same
	}
	return batches
}

// works fails the test unless a free key can be taken and released.
func (r *ring) works(t *testing.T) {
	t.Helper()
	q := r.request("fresh")
	if got := within(t, "take", r.ask(bidTake, q)); got.text != sayTaken {
		t.Errorf("afterwards, a free key: %q", got.text)
	}
	if got := within(t, "release", r.ask(bidRelease, q)); got.text != "freed" {
		t.Errorf("afterwards, the release of it: %q", got.text)
	}
}

// end ends the ring.
func (r *ring) end(t *testing.T) {
	t.Helper()
	if err := r.store.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.told.Load(); n != r.asked {
		t.Errorf("%d answers to %d requests", n, r.asked)
	}
}

// whole is a batch of which nothing is cut.
func (r *ring) whole() cut { return cut{len(r.bids), redistest.Uncut, redistest.Uncut} }

// bytesOf returns how long a batch and its replies are.
func bytesOf(batch []redistest.CutCommand) (commands, replies int) {
	for _, p := range batch {
		commands += p.Bytes
		replies += len(p.Reply)
	}
	return commands, replies
}

func unheard(p redistest.CutCommand) bool { return !p.Delivered }

// sentAgain returns how many commands follow when the batch is cut.
func (r *ring) sentAgain(t *testing.T, c cut) (n int) {
	t.Helper()
	r.proxy.ResetCommands()
	r.round(t, c)
	for _, name := range []string{"SET", "EVALSHA"} {
		n += r.proxy.Commands()[name]
	}
	return n - c.size - 3 // the gate, and what shows that the lane works
}

// inEachLane runs the test with a batch of each lane, whose scripts are known.
func inEachLane(t *testing.T, test func(t *testing.T, r *ring)) {
	t.Helper()
	run := func(name string, bids []bid, gate asks) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRing(t, bids, gate)
			r.round(t, r.whole())
			test(t, r)
			r.end(t)
		})
	}
	run("takes", takeBids(), bidTake)
	run("keeps", keepBids(), bidRenew)
	run("begins", beginBids(), bidBegin)
	run("finishes", finishBids(), bidFinish(store.Abort))
}

// eachOffset calls do with every step-th offset within the bytes, from a random one on. In
// the fast tier it calls do with about six offsets, or with some more of a long batch, and with the race detector with
// a seventh of all. The replies that the server has sent before the cut are delivered and
// lost by turns.
func eachOffset(bytes, step int, do func(n, replies int)) {
	switch {
	case !suite.IsFull():
		step = max(step, min(101*step, bytes/6))
	case suite.Race:
		step *= 7
	}
	for i, n := 0, rand.N(step); n < bytes; i, n = i+1, n+step {
		do(n, [...]int{redistest.Uncut, 0}[i%2])
	}
}

func TestABatchIsCutAtEachByte(t *testing.T) {
	t.Parallel()
	inEachLane(t, func(t *testing.T, r *ring) {
		batch := r.round(t, r.whole())[0]
		commands, replies := bytesOf(batch)
		t.Logf("%d bytes of commands, %d of replies", commands, replies)
		eachOffset(commands, 1, func(n, replies int) { r.round(t, cut{len(batch), n, replies}) })
		for end, i := 0, 0; i < len(batch); i++ {
			end += batch[i].Bytes
			for n := end - 1; n <= end; n++ {
				r.round(t, cut{len(batch), n, redistest.Uncut})
				r.round(t, cut{len(batch), n, 0})
			}
		}
		eachOffset(replies, 1, func(n, _ int) { r.round(t, cut{len(batch), redistest.Uncut, n}) })
	})
}

// Of a command whose both sends are cut, nothing is known, unless one of them
// was answered.
func TestABatchIsCutTwice(t *testing.T) {
	t.Parallel()
	inEachLane(t, func(t *testing.T, r *ring) {
		commands, replies := bytesOf(r.round(t, r.whole())[0])
		eachOffset(replies, 5, func(n, _ int) {
			first := cut{len(r.bids), redistest.Uncut, n}
			again := r.sentAgain(t, first)
			_, replies := bytesOf(r.round(t, first, cut{again, redistest.Uncut, redistest.Uncut})[1])
			for _, m := range [...]int{0, replies / 2, replies - 1} {
				r.round(t, first, cut{again, redistest.Uncut, m})
			}
		})
		eachOffset(commands, 31, func(n, replies int) {
			r.round(t, cut{len(r.bids), n, 0}, cut{len(r.bids), commands - n, replies})
		})
		if r.lost == 0 {
			t.Error("nothing was lost")
		}
	})
}

// The server may have forgotten the scripts: then it is told them in a second
// batch.
func TestABatchOfUnknownScriptsIsCut(t *testing.T) {
	t.Parallel()
	inEachLane(t, func(t *testing.T, r *ring) {
		r.flushes = true
		first := r.round(t, r.whole())[0]
		commands, replies := bytesOf(first)
		eachOffset(commands, 41, func(n, replies int) { r.round(t, cut{len(r.bids), n, replies}) })
		eachOffset(replies, 7, func(n, _ int) { r.round(t, cut{len(r.bids), redistest.Uncut, n}) })

		sources := 0
		for _, p := range first {
			if strings.HasPrefix(p.Reply, "-NOSCRIPT") || isRefused(p) {
				sources++
			}
		}
		second := r.round(t, r.whole(), cut{sources, redistest.Uncut, redistest.Uncut})[1]
		commands, replies = bytesOf(second)
		eachOffset(commands, commands/80, func(n, replies int) { r.round(t, r.whole(), cut{sources, n, replies}) })
		eachOffset(replies, 7, func(n, _ int) { r.round(t, r.whole(), cut{sources, redistest.Uncut, n}) })
	})
}

// Where no other connection is to be had, nothing is known of what was not
// answered.
func TestABatchIsCutFromAServerThatIsGone(t *testing.T) {
	t.Parallel()
	inEachLane(t, func(t *testing.T, r *ring) {
		r.fails = sayLost
		commands, replies := bytesOf(r.round(t, r.whole())[0])
		eachOffset(commands, 61, func(n, replies int) { r.round(t, cut{len(r.bids), n, replies}) })
		eachOffset(replies, 11, func(n, _ int) { r.round(t, cut{len(r.bids), redistest.Uncut, n}) })
		if r.lost == 0 {
			t.Error("nothing was lost")
		}
	})
}

// A server that does not let us in again has said nothing of the commands.
func TestABatchIsCutAndTheServerHasAnotherPassword(t *testing.T) {
	t.Parallel()
	inEachLane(t, func(t *testing.T, r *ring) {
		r.fails, r.refuses = "WRONGPASS, unknown", true
		commands, _ := bytesOf(r.round(t, r.whole())[0])
		eachOffset(commands, 199, func(n, replies int) { r.round(t, cut{len(r.bids), n, replies}) })
		if r.lost == 0 {
			t.Error("nothing was lost")
		}
	})
}
