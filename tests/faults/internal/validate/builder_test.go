package validate

import (
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// ms is the unit of times in tests: milliseconds since the beginning.
const ms = int64(time.Millisecond)

// ttl and claim are those of all built histories, in ms.
const ttl, claim = 500, 100

// A builder builds a history by hand. Process p has only client p.
type builder struct{ history.History }

// build returns the history that f builds.
func build(f func(*builder)) *history.History {
	t := &builder{history.History{Name: "built", Deployment: "server", Begun: 1, TTL: ttl * ms, Claim: claim * ms, Ended: 100_000 * ms}}
	f(t)
	return &t.History
}

// call adds a call. The result may be changed until the next call is added.
func (t *builder) call(process int, kind history.Kind, key string, from, to int64, outcome history.Outcome) *history.Op {
	t.Ops = append(t.Ops, history.Op{
		Process: process, Client: process, Kind: kind, Key: key, Call: from * ms, Return: to * ms, Outcome: outcome,
	})
	return &t.Ops[len(t.Ops)-1]
}

// grant adds a Lock that is granted. Its lease has its own episode, and is valid for a TTL
// from the call on.
func (t *builder) grant(process int, key, lease string, from, to, fence int64) *history.Op {
	op := t.call(process, history.Lock, key, from, to, history.Granted)
	op.Lease, op.Episode, op.Fence, op.ValidUntil = lease, lease, fence, (from+ttl)*ms
	return op
}

// lease returns the grant of a lease.
func (t *builder) lease(lease string) *history.Op {
	return &t.Ops[slices.IndexFunc(t.Ops, func(op history.Op) bool {
		return op.Lease == lease && op.Outcome == history.Granted
	})]
}

// end adds a call that ends or extends a lease.
func (t *builder) end(kind history.Kind, lease string, from, to int64, outcome history.Outcome) *history.Op {
	grant := t.lease(lease)
	op := t.call(grant.Process, kind, grant.Key, from, to, outcome)
	op.Lease, op.ValidUntil = lease, grant.ValidUntil
	return op
}

// release adds a Release that succeeds.
func (t *builder) release(lease string, from, to int64) *history.Op {
	op := t.end(history.Release, lease, from, to, history.Done)
	op.ReliedUntil = min(op.Call, op.ValidUntil)
	return op
}

// leaseEnd adds the end of the lease's context.
func (t *builder) leaseEnd(lease string, at int64) *history.Op {
	return t.end(history.LeaseEnd, lease, at, 0, history.None)
}

// begin adds a Begin whose attempt must run.
func (t *builder) begin(process int, key, lease string, from, to int64, number int, policy history.Policy) *history.Op {
	op := t.call(process, history.Begin, key, from, to, history.Granted)
	op.Lease, op.Episode, op.ValidUntil = lease, lease, (from+ttl)*ms
	op.Number, op.Policy = number, policy
	return op
}

// commit adds a Commit.
func (t *builder) commit(lease, answer string, from, to int64, outcome history.Outcome) *history.Op {
	op := t.end(history.Commit, lease, from, to, outcome)
	op.Record = answer
	return op
}

// replay adds a Begin that returns an answer.
func (t *builder) replay(process int, key, answer string, from, to int64) {
	t.call(process, history.Begin, key, from, to, history.Replayed).Record = answer
}

// kill and pause add a failure of a process.
func (t *builder) kill(process int, at int64) { t.pause(process, at, 0) }

func (t *builder) pause(process int, from, to int64) {
	t.ProcessFailures = append(t.ProcessFailures, history.ProcessFailure{Process: process, From: from * ms, To: to * ms})
}

// lag adds a lag of a process.
func (t *builder) lag(process int, from, to int64) {
	t.Lags = append(t.Lags, history.Lag{Process: process, From: from * ms, To: to * ms})
}

// disrupt and loseData add a disruption.
func (t *builder) disrupt(name string, from, to int64) {
	t.Disruptions = append(t.Disruptions, history.Disruption{Name: name, From: from * ms, To: to * ms})
}

func (t *builder) loseData(from, to int64, keys ...string) {
	t.Disruptions = append(t.Disruptions, history.Disruption{Name: "failover", From: from * ms, To: to * ms, Loss: true, Keys: keys})
}

// checksOf returns the checks that found a violation, sorted.
func checksOf(found []Violation) (checks []string) {
	for _, one := range found {
		checks = append(checks, one.Check)
	}
	slices.Sort(checks)
	return slices.Compact(checks)
}

// A testCase is a history, and the checks that must find a violation in it. No other check
// may.
type testCase struct {
	name  string
	build func(*builder)
	want  []string
}

func runCases(t *testing.T, cases []testCase) {
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			found := All(build(test.build))
			if got := checksOf(found); !slices.Equal(got, slices.Sorted(slices.Values(test.want))) {
				t.Errorf("found %q; want %q\n%v", got, test.want, found)
			}
		})
	}
}
