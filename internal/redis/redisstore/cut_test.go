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

// A cut ends the connection of a batch of size commands: the server receives only the first
// bytes of the commands, and the client only the first bytes of the replies. See
// redistest.Proxy.CutBatch.
type cut struct{ size, commands, replies int }

// round sends the cases as one batch. The first cut applies to this batch, and the next ones
// apply to the batches with the resends. It returns the commands of each batch.
//
// Each case must have one answer, which must be one of those expected after its sends, and the
// state on the server must match the answer. So the key has the token of the request if, and
// only if, the answer says that or that it is unknown. A released key never has it. A token is
// in the queue once.
func (r *cutFixture) round(t *testing.T, cuts ...cut) [][]redistest.CutCommand {
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
	answers := r.sendAsBatch(t, requests)
	got := make([]result, len(answers))
	for i := range answers {
		got[i] = within(t, r.cases[i].key, answers[i])
	}
	batches, sends := make([][]redistest.CutCommand, len(cuts)), make(map[string][]cutSend)
	for i := range cuts {
		batches[i] = within(t, "the batch", happened[i])
		for _, p := range batches[i] {
			key := keyOf(p.Command)
			sends[key] = append(sends[key], cutSend{p, slices.ContainsFunc(batches[i], undelivered)})
		}
	}
	r.fail(t, false)
	found := r.states(t)
	for i := range r.cases {
		c := &r.cases[i]
		r.check(t, c, c.expected(sends[c.key], r.fails), got[i], asked, &requests[i], found[i])
	}
	r.checkLaneWorks(t)
	for i := range answers {
		if len(answers[i]) > 0 {
			t.Errorf("%s has two answers", r.cases[i].key)
		}
	}
	if t.Failed() {
		t.Fatalf("cut at %+v", cuts) // the other rounds would fail for the same reason
	}
	return batches
}

// checkLaneWorks fails the test unless a free key can be taken and released.
func (r *cutFixture) checkLaneWorks(t *testing.T) {
	t.Helper()
	q := r.request("fresh", store.Exclusive)
	if got := within(t, "take", r.ask(sendTake, q)); got.text != textTaken {
		t.Errorf("afterwards, take of a free key: %q", got.text)
	}
	if got := within(t, "release", r.ask(sendRelease, q)); got.text != "freed" {
		t.Errorf("afterwards, release of the key: %q", got.text)
	}
}

// end closes the store, and fails the test unless each request had one answer.
func (r *cutFixture) end(t *testing.T) {
	t.Helper()
	if err := r.store.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.answered.Load(); n != r.asked {
		t.Errorf("%d answers to %d requests", n, r.asked)
	}
}

// uncut returns a cut that cuts nothing.
func (r *cutFixture) uncut() cut { return cut{len(r.cases), redistest.Uncut, redistest.Uncut} }

// bytesOf returns the lengths of the commands of a batch and of its replies.
func bytesOf(batch []redistest.CutCommand) (commands, replies int) {
	for _, p := range batch {
		commands += p.Bytes
		replies += len(p.Reply)
	}
	return commands, replies
}

func undelivered(p redistest.CutCommand) bool { return !p.Delivered }

// resends returns the number of commands that follow after this cut of the batch.
func (r *cutFixture) resends(t *testing.T, c cut) (n int) {
	t.Helper()
	r.proxy.ResetCommands()
	r.round(t, c)
	for _, name := range []string{"SET", "EVALSHA"} {
		n += r.proxy.Commands()[name]
	}
	return n - c.size - 3 // the gate, and the two commands of checkLaneWorks
}

// inEachLane runs the test with a batch of each lane. The server has the scripts.
func inEachLane(t *testing.T, test func(t *testing.T, r *cutFixture)) {
	t.Helper()
	run := func(name string, cases []cutCase, gate sender) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newCutFixture(t, cases, gate)
			r.round(t, r.uncut())
			test(t, r)
			r.end(t)
		})
	}
	run("takes", takeCases(), sendTake)
	run("renewals and releases", holderCases(), sendRenew)
	run("begins", beginCases(), sendBeginAgain)
	run("finishes", finishCases(), sendFinish(store.Abort))
}

// eachOffset calls do with every step-th offset within the bytes, from a random one on. In
// the fast tier it calls do with about three offsets, or with some more of a long batch, and
// with the race detector with a seventh of all: each run of a test cuts a sample of the bytes, so
// no test is left out. The replies that the server has sent before the cut are delivered and lost
// by turns.
func eachOffset(bytes, step int, do func(n, replies int)) {
	switch {
	case !suite.IsFull():
		step = max(step, min(211*step, bytes/3))
	case suite.Race:
		step *= 7
	}
	for i, n := 0, rand.N(step); n < bytes; i, n = i+1, n+step {
		do(n, [...]int{redistest.Uncut, 0}[i%2])
	}
}

// Each run cuts at other bytes, and always at the ends of commands.
func TestBatchIsCutAtAnyByte(t *testing.T) {
	t.Parallel()
	inEachLane(t, func(t *testing.T, r *cutFixture) {
		batch := r.round(t, r.uncut())[0]
		commands, replies := bytesOf(batch)
		t.Logf("%d bytes of commands, %d of replies", commands, replies)
		eachOffset(commands, 3, func(n, replies int) { r.round(t, cut{len(batch), n, replies}) })
		for end, i := 0, 0; i < len(batch); i++ {
			end += batch[i].Bytes
			for n := end - 1; n <= end; n++ {
				r.round(t, cut{len(batch), n, redistest.Uncut})
				r.round(t, cut{len(batch), n, 0})
			}
		}
		eachOffset(replies, 3, func(n, _ int) { r.round(t, cut{len(batch), redistest.Uncut, n}) })
	})
}

// If both sends of a command are cut, its outcome is unknown, unless a reply has arrived.
func TestBatchAndItsResendAreCut(t *testing.T) {
	t.Parallel()
	inEachLane(t, func(t *testing.T, r *cutFixture) {
		commands, replies := bytesOf(r.round(t, r.uncut())[0])
		eachOffset(replies, 5, func(n, _ int) {
			first := cut{len(r.cases), redistest.Uncut, n}
			again := r.resends(t, first)
			_, replies := bytesOf(r.round(t, first, cut{again, redistest.Uncut, redistest.Uncut})[1])
			for _, m := range [...]int{0, replies / 2, replies - 1} {
				r.round(t, first, cut{again, redistest.Uncut, m})
			}
		})
		eachOffset(commands, 31, func(n, replies int) {
			r.round(t, cut{len(r.cases), n, 0}, cut{len(r.cases), commands - n, replies})
		})
		if r.lost == 0 {
			t.Error("no reply was lost")
		}
	})
}

// If the server does not have the scripts, a second batch has their sources.
func TestBatchOfUnknownScriptsIsCut(t *testing.T) {
	t.Parallel()
	inEachLane(t, func(t *testing.T, r *cutFixture) {
		r.flushes = true
		first := r.round(t, r.uncut())[0]
		commands, replies := bytesOf(first)
		eachOffset(commands, 41, func(n, replies int) { r.round(t, cut{len(r.cases), n, replies}) })
		eachOffset(replies, 7, func(n, _ int) { r.round(t, cut{len(r.cases), redistest.Uncut, n}) })

		sources := 0
		for _, p := range first {
			if strings.HasPrefix(p.Reply, "-NOSCRIPT") || isRefused(p) {
				sources++
			}
		}
		second := r.round(t, r.uncut(), cut{sources, redistest.Uncut, redistest.Uncut})[1]
		commands, replies = bytesOf(second)
		eachOffset(commands, commands/80, func(n, replies int) { r.round(t, r.uncut(), cut{sources, n, replies}) })
		eachOffset(replies, 7, func(n, _ int) { r.round(t, r.uncut(), cut{sources, redistest.Uncut, n}) })
	})
}

// If the client cannot connect again, the outcome of a command without a reply is unknown.
func TestBatchIsCutAndServerRefusesConnections(t *testing.T) {
	t.Parallel()
	inEachLane(t, func(t *testing.T, r *cutFixture) {
		r.fails = textLost
		commands, replies := bytesOf(r.round(t, r.uncut())[0])
		eachOffset(commands, 61, func(n, replies int) { r.round(t, cut{len(r.cases), n, replies}) })
		eachOffset(replies, 11, func(n, _ int) { r.round(t, cut{len(r.cases), redistest.Uncut, n}) })
		if r.lost == 0 {
			t.Error("no reply was lost")
		}
	})
}

// If the server refuses the password of a new connection, the outcome of a command without a
// reply is unknown.
func TestBatchIsCutAndServerRefusesPassword(t *testing.T) {
	t.Parallel()
	inEachLane(t, func(t *testing.T, r *cutFixture) {
		r.fails, r.refuses = "WRONGPASS, unknown", true
		commands, _ := bytesOf(r.round(t, r.uncut())[0])
		eachOffset(commands, 199, func(n, replies int) { r.round(t, cut{len(r.cases), n, replies}) })
		if r.lost == 0 {
			t.Error("no reply was lost")
		}
	})
}
