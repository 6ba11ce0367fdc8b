package validate

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestMain(m *testing.M) { suite.Main(m) }

// ms is the unit of the times in a text.
const ms = int64(time.Millisecond)

// ttl and claim are those of each text, in ms.
const ttl, claim = 500, 100

// A parser reads the text of a history: items that semicolons separate. All times are in ms.
//
//	lock 1 k 2-3 =a #10   client 1 in process 1 calls Lock of k from 2 to 3, and is granted the
//	                      lease a with the fencing number 10; try and begin are the same
//	try 1 k 2-3 busy      the outcome of a call without a lease; "4-" never returns
//	release a 5-6         the holder of a ends it; extend, commit, seal and abort are the same
//	ended a 7             the context of a ends
//	disrupt 2-9 NAME, lose 2-9 KEYS, kill 1 5, pause 1 5-9, lag 1 5-9
//	write k v3, read k v3, charge a 5, fast 1 k 2-3 #10, size 501, ahead
//	run begun:5           changes the settings of the history
//
// An option is a word, or a name and a number. A lease is valid for a TTL from its call on, and
// its holder relies on it until the call that ends it. If no item has a fencing number, the
// history has none.
type parser struct {
	testing.TB
	history.History
	validUntil int64 // of each grant; 0 for a TTL from its call on
}

func parse(tb testing.TB, text string) *history.History {
	tb.Helper()
	p := &parser{TB: tb, History: history.History{
		Name: "text", Deployment: "server", Begun: 1, Ended: 100_000 * ms,
		TTL: ttl * ms, Claim: claim * ms, CommandTimeout: ttl / 4 * ms, Unfenced: !strings.Contains(text, "#"),
	}}
	for item := range strings.SplitSeq(text, ";") {
		if words := strings.Fields(item); len(words) > 0 {
			p.add(words[0], words[1:])
		}
	}
	return &p.History
}

// add adds an item.
func (p *parser) add(kind string, words []string) {
	switch kind {
	case "run":
		p.set(words)
	case "disrupt":
		from, to := p.span(words[0])
		p.Disruptions = append(p.Disruptions, history.Disruption{Name: cmp.Or(strings.Join(words[1:], " "), "cut"), From: from, To: to})
	case "lose":
		from, to := p.span(words[0])
		p.Disruptions = append(p.Disruptions, history.Disruption{Name: "loss", From: from, To: to, Loss: true, Keys: words[1:]})
	case "kill":
		p.ProcessFailures = append(p.ProcessFailures, history.ProcessFailure{Process: int(p.number(words[0])), From: p.number(words[1]) * ms})
	case "pause":
		from, to := p.span(words[1])
		p.ProcessFailures = append(p.ProcessFailures, history.ProcessFailure{Process: int(p.number(words[0])), From: from, To: to})
	case "lag":
		from, to := p.span(words[1])
		p.Lags = append(p.Lags, history.Lag{Process: int(p.number(words[0])), From: from, To: to})
	case "write", "read":
		p.access(kind == "write", words)
	case "charge":
		of := p.grant(words[0])
		p.Effects = append(p.Effects, history.Effect{At: p.number(words[1]) * ms, Process: of.Process, Client: of.Client, Key: of.Key, Number: of.Number, Lease: words[0]})
	case "fast":
		op := p.call(history.Lock, words)
		p.FastLeases = append(p.FastLeases, history.FastLease{Process: op.Process, Client: op.Client, Key: op.Key, Call: op.Call, Return: op.Return, Fence: op.Fence})
	case "size":
		p.Sizes = append(p.Sizes, history.Size{Process: 1, Goroutines: int(p.number(words[0])), At: ms})
	case "ahead":
		p.AheadCounters = append(p.AheadCounters, history.AheadCounter{Key: "reqlock:k", At: ms, By: 1000})
	case "lock", "try", "begin":
		p.Ops = append(p.Ops, p.call(history.Kind(kind), words))
	case "ended":
		p.Ops = append(p.Ops, p.end(history.LeaseEnd, words))
	default:
		p.Ops = append(p.Ops, p.end(history.Kind(kind), words))
	}
}

// set changes the settings of the history.
func (p *parser) set(words []string) {
	for _, word := range words {
		name, value, _ := strings.Cut(word, ":")
		switch name {
		case "on":
			p.Deployment = value
		case "careless":
			p.Careless = true
		case "fenced":
			p.Unfenced = false
		default:
			*map[string]*int64{
				"ttl": &p.TTL, "begun": &p.Begun, "ended": &p.Ended, "recovered": &p.Recovered,
				"timeout": &p.CommandTimeout, "failfast": &p.FailFast, "valid": &p.validUntil,
			}[name] = p.number(value) * ms
		}
	}
}

// call returns a call that is not about a lease that was granted before.
func (p *parser) call(kind history.Kind, words []string) history.Op {
	process := int(p.number(words[0]))
	op := history.Op{Process: process, Client: process, Kind: kind, Key: words[1]}
	op.Call, op.Return = p.span(words[2])
	if kind == history.Begin {
		op.Policy = history.Reject
	}
	for _, word := range words[3:] {
		if lease, is := strings.CutPrefix(word, "="); is {
			op.Outcome, op.Lease, op.Episode = history.Granted, lease, lease
			op.ValidUntil = cmp.Or(p.validUntil, op.Call+ttl*ms)
			if kind == history.Begin {
				op.Number = 1
			}
		}
	}
	p.options(&op, words[3:])
	return op
}

// end returns a call that ends or extends a lease, or the end of its context.
func (p *parser) end(kind history.Kind, words []string) history.Op {
	of := p.grant(words[0])
	op := history.Op{Process: of.Process, Client: of.Client, Kind: kind, Key: of.Key, Lease: words[0], ValidUntil: of.ValidUntil}
	if kind == history.LeaseEnd {
		op.Call = p.number(words[1]) * ms
	} else {
		op.Outcome = history.Done
		op.Call, op.Return = p.span(words[1])
	}
	p.options(&op, words[2:])
	if kind == history.LeaseEnd && op.Outcome != history.None {
		op.Return = op.Call
	}
	if kind != history.LeaseEnd && kind != history.Extend && op.ReliedUntil == 0 {
		op.ReliedUntil = min(op.Call, op.ValidUntil)
	}
	return op
}

// grant returns the call that was granted a lease.
func (p *parser) grant(lease string) (of history.Op) {
	for _, op := range p.Ops {
		if op.Lease == lease && op.Outcome == history.Granted {
			of = op
		}
	}
	return of
}

// access adds an access to a register.
func (p *parser) access(write bool, words []string) {
	one := history.Access{At: int64(len(p.Accesses)+1) * ms, Key: words[0], Version: p.number(words[1][1:]), Write: write}
	for _, word := range words[2:] {
		switch name, value, _ := strings.Cut(word, ":"); name {
		case "fenced":
			one.Fenced = true
		case "refused":
			one.Refused = true
		case "by":
			one.Process = int(p.number(value))
			one.Client = one.Process
		case "at":
			one.At = p.number(value) * ms
		case "checked":
			one.CheckedAt = p.number(value) * ms
		default:
			one.Fence = p.number(name[1:])
		}
	}
	p.Accesses = append(p.Accesses, one)
}

// options sets the fields of a call that the words name.
func (p *parser) options(op *history.Op, words []string) {
	for _, word := range words {
		name, value, _ := strings.Cut(word, ":")
		switch name {
		case "valid":
			op.ValidUntil = p.number(value) * ms
		case "relied":
			op.ReliedUntil = p.number(value) * ms
		case "wait":
			op.Wait = p.number(value) * ms
		case "hold":
			op.MinHold = p.number(value) * ms
		case "limit":
			op.Limit = int(p.number(value))
		case "shared":
			op.Limit = history.Unlimited
		case "n":
			op.Number = int(p.number(value))
		case "of":
			op.Episode = value
		case "answer":
			op.Record = value
		case "rerun":
			op.Policy = history.Rerun
		case "other":
			op.Other = true
		case "unrenewed":
			op.Unrenewed = true
		case "dial":
			op.Error = noConnection + "127.0.0.1:6379: connect: connection refused"
		case "none":
			op.Outcome = history.None
		default:
			if fence, is := strings.CutPrefix(name, "#"); is {
				op.Fence = p.number(fence)
			} else if !strings.HasPrefix(name, "=") {
				op.Outcome = history.Outcome(name)
			}
		}
	}
}

// span returns the times of "from-to".
func (p *parser) span(text string) (from, to int64) {
	first, last, _ := strings.Cut(text, "-")
	if last == "" {
		return p.number(first) * ms, 0
	}
	return p.number(first) * ms, p.number(last) * ms
}

func (p *parser) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.Fatal(err)
	}
	return n
}

// A testCase is a history, and the checks that find a violation in it, sorted. No other check
// does.
type testCase struct{ name, history, want string }

// runCases validates histories that begin with the same text.
func runCases(t *testing.T, begin string, cases []testCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var checks []string
			found := All(parse(t, begin+";"+test.history))
			for _, one := range found {
				checks = append(checks, one.Check)
			}
			slices.Sort(checks)
			if got := strings.Join(slices.Compact(checks), " "); got != test.want {
				t.Errorf("found %q; want %q\n%v", got, test.want, found)
			}
		})
	}
}
