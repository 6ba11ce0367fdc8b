package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A cutCase is a request of a batch, on a key of its own. The texts are those of a transitionRow:
// A1 is the token of the request, and A2 the token that rejoins.
type cutCase struct {
	name          string
	do            sender
	change        func(*storetest.AnyRequest)
	before, after string
	want          string // the answer
	again         string // the answer to a second run, if it is another one
}

// wrongType is the answer to a request for a key that has a list.
const wrongType = "WRONGTYPE"

// cutBatches are batches, by their lanes. Bob listens.
var cutBatches = map[string][]cutCase{
	"takes": {
		{name: "take", do: sendTake, after: "A1 ttl", want: "granted, waiting -1"},
		{name: "take a held key", do: sendTake, before: "x! 1h", after: "=", want: "by x!"},
		{name: "take a list", do: sendTake, want: wrongType},
		{name: "enqueue with numbers", do: sendEnqueue, change: numbers(8), after: "A1 ttl", want: "granted"},
		{name: "enqueue behind a foreign client", do: sendEnqueue, before: "x! 1h", after: "x! 1h | A1", want: "by x!, foreign"},
		{name: "enqueue without joining", do: sendEnqueue, change: withoutJoin, before: "x! 1h | B1", after: "=", want: "by x!"},
		{name: "enqueue for a list", do: sendEnqueue, want: wrongType},
		{name: "confirm", do: sendEnqueue, change: numbers(64), before: "A1 claim | C1 A1", after: "A1 ttl | C1", want: "granted, waiting 1"},
		{name: "enqueue behind waiters", do: sendEnqueue, before: "| C1 B1", after: "B1 claim | A1", want: "by B1"},
		{name: "share", do: sendEnqueue, change: limit(store.Unlimited), after: "shared ttl | | | A1=ttl", want: "granted"},
		{name: "confirm a permit", do: sendEnqueue, change: limit(2), before: "A1 claim | C1", after: "shared ttl | C1 | | A1=ttl", want: "granted, waiting 1"},
		{name: "try a permit", do: sendEnqueue, change: triesOne, before: "shared 1h | | | A1*=1h", after: "=", want: "shared"},
	},
	"renewals and releases": {
		{name: "release", do: sendRelease, before: "A1 claim", want: "freed", again: "unsure"},
		{name: "rejoin alone", do: sendRelease, change: rejoins, before: "A1 claim", after: "A2 ttl", want: "kept", again: "unsure"},
		{name: "hand over", do: sendRelease, before: "A1 claim | C1 B1 B2", after: "B1 claim | B2", want: "handed", again: "unsure"},
		{name: "rejoin behind others", do: sendRelease, change: rejoins, before: "A1 claim | B1 C1", after: "B1 claim | C1 A2", want: "handed", again: "unsure"},
		{name: "leave", do: sendRelease, change: rejoins, before: "B1 1h | A1 C1", after: "B1 1h | C1", want: "nothing", again: "unsure"},
		{name: "release a list", do: sendRelease, want: wrongType},
		{name: "renew with numbers", do: sendRenew, change: numbers(8), before: "A1 claim | B1", after: "A1 ttl | B1", want: "granted, waiting 1"},
		{name: "renew", do: sendRenew, before: "A1 claim", after: "A1 ttl", want: "granted"},
		{name: "renew another's key", do: sendRenew, before: "x! 1h", after: "=", want: "nothing"},
		{name: "release a permit", do: sendRelease, change: limit(2), before: "shared ttl | | | A1=ttl A1*=claim", after: "shared claim | | | A1*=claim", want: "freed", again: "unsure"},
		{name: "renew a permit", do: sendRenew, change: limit(2), before: "shared claim | | | A1=claim", after: "shared ttl | | | A1=ttl", want: "granted"},
	},
	"begins": {
		{name: "begin", do: sendBegin, change: numbers(8), after: "A1 ttl | | R A1 1", want: "granted, number 1"},
		{name: "a done request", do: sendBegin, before: "| | D B1", after: "=", want: "done, answer"},
		{name: "begin again", do: sendBegin, change: rerun, before: "| | R C1 1", after: "A1 ttl | | R A1 2", want: "granted, number 2"},
		{name: "after a death", do: sendBegin, before: "A1 claim | A1 B1 | R C1 1", after: "B1 claim | | R C1 1", want: "interrupted, unreported C1"},
		{name: "begin behind another", do: sendBegin, before: "B1 1h | | R B1 1", after: "B1 1h | A1 | R B1 1", want: "by B1, running"},
		{name: "begin for a list", do: sendBegin, want: wrongType},
		{name: "confirm", do: sendBegin, change: numbers(64), before: "A1 claim | C1 A1", after: "A1 ttl | C1 | R A1 1", want: "granted, waiting 1, number 1"},
	},
	"finishes": {
		{name: "commit", do: sendFinish(store.EndCommit), before: "A1 claim | | R A1 1", after: "| | D A1", want: "freed, stored", again: "unsure, stored"},
		{name: "abort", do: sendFinish(store.EndAbort), before: "A1 claim | | R A1 1", after: "| | A A1 @abort", want: "freed, stored", again: "unsure, stored"},
		{name: "seal", do: sendFinish(store.EndDone), before: "A1 claim | C1 B1 B2 | R A1 2", after: "B1 claim | B2 | U A1", want: "handed, stored", again: "unsure, stored"},
		{name: "restore", do: sendFinish(store.EndCommit), before: "A1 claim", after: "| | D A1", want: "freed, restored", again: "unsure, stored"},
		{name: "commit too late", do: sendFinish(store.EndCommit), before: "B1 1h | | R B1 1", after: "=", want: "nothing", again: "unsure"},
		{name: "commit a list", do: sendFinish(store.EndCommit), want: wrongType},
		{name: "abort after another's commit", do: sendFinish(store.EndAbort), before: "A1 claim | | D B1", after: "| | D B1", want: "freed", again: "unsure"},
	},
}

func triesOne(r *storetest.AnyRequest) { r.Limit, r.Join = 1, false }

// A cut ends the connection of a batch of size commands: the server receives only the first
// bytes of the commands, and the client only the first bytes of the replies. See
// redistest.Proxy.CutBatch.
type cut struct{ size, commands, replies int }

func (c cut) isCut() bool { return c.commands != redistest.Uncut || c.replies != redistest.Uncut }

// round sends the cases as one batch. The first cut applies to this batch, and the next ones
// apply to the batches with the resends. It returns the commands of each batch. See check for
// what the answers and the states must be.
func (r *cutFixture) round(t *testing.T, cuts ...cut) [][]redistest.CutCommand {
	t.Helper()
	requests := make([]storetest.AnyRequest, len(r.cases))
	r.direct.Del(t.Context(), "p:gate", "{p:gate}:r", "p:fresh")
	for i := range requests {
		requests[i] = r.request(fmt.Sprint("x", i), r.cases[i].change)
		withTokens(r.cases[i].before, &requests[i]).PutAt(t, r.direct, "p:"+requests[i].Key)
		if r.cases[i].want == wrongType {
			r.direct.RPush(t.Context(), "p:"+requests[i].Key, "x")
		}
	}
	happened, broken := make([]<-chan []redistest.CutCommand, len(cuts)), 0
	for i, c := range cuts {
		happened[i] = r.proxy.CutBatch(func(command []string) bool {
			ofBatch := slices.ContainsFunc(command, func(arg string) bool { return strings.HasPrefix(arg, "p:x") })
			if ofBatch && i == 0 {
				r.fail(true)
				if r.flushes {
					r.direct.ScriptFlush(t.Context())
				}
			}
			return ofBatch
		}, c.size, c.commands, c.replies)
		if c.isCut() {
			broken++
		}
	}
	asked := time.Now()
	answers := r.sendAsBatch(t, requests)
	got := make([]cutResult, len(answers))
	for i := range answers {
		got[i] = suite.Receive(t, r.cases[i].name, answers[i])
	}
	batches := make([][]redistest.CutCommand, len(cuts))
	for i := range cuts {
		batches[i] = suite.Receive(t, "the batch", happened[i])
	}
	r.fail(false)
	for i := range r.cases {
		r.check(t, &r.cases[i], broken, &got[i], asked, &requests[i])
	}
	fresh := r.request("fresh", nil)
	if got := suite.Receive(t, "take", r.ask(sendTake, fresh)); !got.granted {
		t.Errorf("afterwards, take of a free key: %+v", got)
	}
	if got := suite.Receive(t, "release", r.ask(sendRelease, fresh)); got.status != store.Freed {
		t.Errorf("afterwards, release of the key: %+v", got)
	}
	for i := range answers {
		if len(answers[i]) > 0 {
			t.Errorf("%s has two answers", r.cases[i].name)
		}
	}
	if t.Failed() {
		t.Fatalf("cut at %+v", cuts) // the other rounds would fail for the same reason
	}
	return batches
}

// check fails the test unless the answer is that to the first run, or, after a cut, that to a
// second one, and the state is that after the runs. An outcome may be unknown if two batches were
// cut, or if the client could not connect after a cut. Then the state may also be as before.
func (r *cutFixture) check(t *testing.T, c *cutCase, broken int, got *cutResult, asked time.Time, q *storetest.AnyRequest) {
	t.Helper()
	// A cut closes the connection, so no command waits for half of its bound to be sent again.
	if took := got.at.Sub(asked); took > q.Bound {
		t.Errorf("%s: answer after %v", c.name, took)
	}
	var isRight, isLost bool
	if got.err != nil {
		fault := storetest.AsFault(t, got.err)
		isLost = command.IsTransport(fault) && fault.Temporary && fault.Unknown && (broken > 1 || broken == 1 && r.refuses)
		isRight = c.want == wrongType && strings.HasPrefix(got.err.Error(), wrongType) && !fault.Temporary && (!fault.Unknown || broken > 0)
	} else if c.want != wrongType {
		isRight = got.outcome == outcomeOfText(c.want) || broken > 0 && c.again != "" && got.outcome == outcomeOfText(c.again)
	}
	if isLost {
		r.lost++
	}
	if !isRight && !isLost {
		t.Errorf("%s: answer %+v, want %q", c.name, *got, c.want)
	}
	before, found := withTokens(c.before, q), storetest.FoundAt(t, r.direct, "p:"+q.Key)
	after := before
	if c.after != "=" {
		after = withTokens(c.after, q)
	}
	if !after.Is(found) && (!isLost || !before.Is(found)) {
		t.Errorf("%s, answer %+v: the state is %+v, want %+v", c.name, *got, found, after)
	}
	if (got.granted || got.status == store.Kept) && (got.since.Before(asked) || got.since.After(got.at)) {
		t.Errorf("%s: the lease counts from %v, requested at %v and answered at %v", c.name, got.since, asked, got.at)
	}
	switch numbered := got.granted && q.Fences > 0; {
	case numbered != (got.fences.count > 0), numbered && got.fences.first <= r.fences[q.Key]:
		t.Errorf("%s: the fencing numbers are %+v after %d", c.name, got.fences, r.fences[q.Key])
	case numbered:
		r.fences[q.Key] = got.fences.end()
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

// needsAnother reports whether another command follows the send: its script is unknown, or it is a
// SET NX that set nothing.
func needsAnother(p redistest.CutCommand) bool {
	isGet := slices.ContainsFunc(p.Command, func(arg string) bool { return strings.EqualFold(arg, "get") })
	return strings.HasPrefix(p.Reply, "-NOSCRIPT") || p.Command[0] == "SET" && strings.HasPrefix(p.Reply, "_") && !isGet
}

// resends returns the number of commands that follow after this cut of the batch.
func (r *cutFixture) resends(t *testing.T, c cut) (n int) {
	t.Helper()
	r.proxy.ResetCommands()
	r.round(t, c)
	for _, name := range []string{"SET", "EVALSHA"} {
		n += r.proxy.Commands()[name]
	}
	return n - c.size - 3 // the gate, and the two commands after the batch
}

// inEachLane runs the test with a batch of each lane, after a round that cuts nothing.
func inEachLane(t *testing.T, test func(t *testing.T, r *cutFixture)) {
	t.Helper()
	for name, cases := range cutBatches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newCutFixture(t, cases)
			r.round(t, r.uncut())
			test(t, r)
			if err := r.store.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := r.answered.Load(); n != r.asked {
				t.Errorf("%d answers to %d requests", n, r.asked)
			}
		})
	}
}

// eachOffset calls do with every step-th offset within the bytes, from a random one on: in the fast
// tier with about three offsets, or with some more of a long batch. The replies that the server has
// sent before the cut are delivered and lost by turns.
func eachOffset(bytes, step int, do func(n, replies int)) {
	if !suite.IsFull() {
		step = max(step, min(211*step, bytes/3))
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
		eachOffset(commands, 13, func(n, replies int) { r.round(t, cut{len(batch), n, replies}) })
		for end, i := 0, 0; i < len(batch); i++ {
			end += batch[i].Bytes
			for n := end - 1; n <= end; n++ {
				r.round(t, cut{len(batch), n, redistest.Uncut})
				r.round(t, cut{len(batch), n, 0})
			}
		}
		eachOffset(replies, 11, func(n, _ int) { r.round(t, cut{len(batch), redistest.Uncut, n}) })
	})
}

// If both sends of a command are cut, its outcome is unknown, unless a reply has arrived.
func TestBatchAndItsResendAreCut(t *testing.T) {
	t.Parallel()
	inEachLane(t, func(t *testing.T, r *cutFixture) {
		commands, replies := bytesOf(r.round(t, r.uncut())[0])
		eachOffset(replies, 17, func(n, _ int) {
			first := cut{len(r.cases), redistest.Uncut, n}
			again := r.resends(t, first)
			_, replies := bytesOf(r.round(t, first, cut{again, redistest.Uncut, redistest.Uncut})[1])
			for _, m := range [...]int{0, replies / 2, replies - 1} {
				r.round(t, first, cut{again, redistest.Uncut, m})
			}
		})
		eachOffset(commands, 101, func(n, replies int) {
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
		eachOffset(commands, 131, func(n, replies int) { r.round(t, cut{len(r.cases), n, replies}) })
		eachOffset(replies, 23, func(n, _ int) { r.round(t, cut{len(r.cases), redistest.Uncut, n}) })

		sources := 0
		for _, p := range first {
			if needsAnother(p) {
				sources++
			}
		}
		commands, replies = bytesOf(r.round(t, r.uncut(), cut{sources, redistest.Uncut, redistest.Uncut})[1])
		eachOffset(commands, commands/30, func(n, replies int) { r.round(t, r.uncut(), cut{sources, n, replies}) })
		eachOffset(replies, 23, func(n, _ int) { r.round(t, r.uncut(), cut{sources, redistest.Uncut, n}) })
	})
}

// If the client cannot connect again, the outcome of a command without a reply is unknown.
func TestBatchIsCutAndServerRefusesConnections(t *testing.T) {
	t.Parallel()
	inEachLane(t, func(t *testing.T, r *cutFixture) {
		r.refuses = true
		commands, replies := bytesOf(r.round(t, r.uncut())[0])
		eachOffset(commands, 101, func(n, replies int) { r.round(t, cut{len(r.cases), n, replies}) })
		eachOffset(replies, 11, func(n, _ int) { r.round(t, cut{len(r.cases), redistest.Uncut, n}) })
		if r.lost == 0 {
			t.Error("no reply was lost")
		}
	})
}
