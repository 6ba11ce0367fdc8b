package redisstore

import (
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// After a lost reply the transition is resent. The reply to the second send must be decoded with
// the first one in mind.
func TestEachScriptSurvivesLostReply(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		do     transition
		before string
		want   string // the second send finds what the first one has done
		after  string
	}{
		{"enqueue, granted", enqueue, "", "granted", "A1 ttl"},
		{"enqueue, joined once", enqueue, "x! ttl", "by x!, left ttl, foreign", "x! ttl | A1"},
		{"enqueue, fresh: joined once", asking(fresh), "x! ttl | B1", "by x!, left ttl", "x! ttl | B1 A1"},
		{"renew", renew, "A1 claim", "granted", "A1 ttl"},
		{"release", release, "A1 ttl", "unsure", ""},
		{"rejoin", rejoin, "A1 claim", "unsure", "A2 ttl"},
		{"hand over to a ticket", toTicket, "A1 ttl", "freed", "D1 claim"},
		{"hand over a lease that was lost", toTicket, "B1 ttl", "nothing", "B1 ttl"},
		{"accept", accept, "D1 claim", "granted", "A1 ttl"},
		{"share", asking(permit), "", "granted", "shared ttl | | | A1/2=ttl"},
		{"share, briefly", asking(permit, withoutHolder), "", "granted", "shared ttl | | | A1/2=ttl"},
		{"share, joined once", asking(permit), "B1 ttl", "by B1, left ttl", "B1 ttl | A1/2"},
		{"renew a shared lease", renewing(permit), "shared claim | | | A1/2=claim", "granted", "shared ttl | | | A1/2=ttl"},
		{"release a shared lease", releasing(permit), "shared ttl | | | A1/2=ttl", "unsure", ""},
		{"release a shared lease and rejoin", releasing(permit, rejoinsAsPermit), "shared ttl | | | A1/2=ttl", "unsure", "shared ttl | | | A2/2=ttl"},
		{"begin: no other attempt", begin(rerun), "| | R B1 1", "granted, number 2", "A1 ttl | | R A1 2"},
		{"begin, a verdict", begin(), "A1 ttl | | D B1", "done, answer", "| | D B1"},
		{"commit", finish(store.EndCommit), "A1 ttl | | R A1 1", "unsure, stored", "| | D A1"},
		{"commit without a record", finish(store.EndCommit), "A1 ttl", "unsure, stored", "| | D A1"},
		{"abort", finish(store.EndAbort), "A1 ttl | | R A1 1", "unsure, stored", "| | A A1 @abort"},
		{"forget", resolve, "| | R B1 1", "resolved", "| | A B1 x=B1"},
		{"answer", resolveAs(store.ResolveAnswered, storetest.Bob1), "| | R B1 1", "resolved", "| | D resolved:B1"},
		{"outcome", readOutcome(storetest.Keep), "| | D B1", "answered B1", "| | D B1"},
	}
	for name, mode := range map[string]redistest.Mode{"connection closed": redistest.CloseConn, "connection open": redistest.KeepConn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, test := range tests {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					s, proxy, direct := behindProxy(t)
					stateOf(test.before).Put(t, direct)
					// The server does not know the script yet, so EVALSHA runs nothing.
					dropped := proxy.DropReply(redistest.Named("EVAL"), mode)
					got := test.do.run(t, s)
					suite.AwaitClosed(t, "the reply is lost", dropped)
					if got.round(outcomeOfText(test.want)); got != outcomeOfText(test.want) {
						t.Errorf("got %+v, want %s", got, test.want)
					}
					stateOf(test.after).Check(t, direct)
				})
			}
		})
	}
}

func rejoinsAsPermit(r *storetest.AnyRequest) { r.Rejoin = tokenOf("A2/2") }

// The second send of a take finds the own token. Its lease counts from the first send at the
// latest, which took the key.
func TestTakeSurvivesLostReply(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]redistest.Mode{"connection closed": redistest.CloseConn, "connection open": redistest.KeepConn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, proxy, direct := behindProxy(t)
			dropped := proxy.DropReply(redistest.Named("SET"), mode)
			answered := make(chan store.Answer, 1)
			s.Store.Take(storetest.Request(storetest.Me1).Take(), func(got store.Answer, _ error) { answered <- got })
			suite.AwaitClosed(t, "the reply is lost", dropped)
			lost := time.Now()
			if got := suite.Receive(t, "an answer", answered); !got.Granted || got.Since.After(lost) {
				t.Errorf("%+v, %v after the first send", got, got.Since.Sub(lost))
			}
			stateOf("A1 ttl").Check(t, direct)
		})
	}
}

// Both sends of a transition are held until its bound has ended, and released then. A grant is
// reported as late for each of them, and nothing else is.
func TestLateGrantsAreReported(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, before string
		do           transition
		granted      string // the token that is reported, or ""
		after        string
	}{
		{"enqueue", "", enqueue, "A1", "A1 ttl"},
		{"share", "", asking(permit), "A1/2", "shared ttl | | | A1/2=ttl"},
		{"begin", "", begin(), "A1", "A1 ttl | | R A1 1"},
		{"a kept release", "A1 claim", rejoin, "A2", "A2 ttl"},
		{"accept", "D1 claim", accept, "A1", "A1 ttl"},
		{"accepted before", "B1 ttl", accept, "", "B1 ttl"},
		{"hand over to a ticket", "A1 ttl", toTicket, "", "D1 claim"},
		{"release", "A1 ttl", release, "", ""},
		{"commit", "A1 ttl | | R A1 1", finish(store.EndCommit), "", "| | D A1"},
		{"begin, a verdict", "| | D B1", begin(), "", "| | D B1"},
		{"begin, busy", "B1 ttl", begin(), "", "B1 ttl | A1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, proxy, direct := behindProxy(t, storetest.LongReads)
			s.bound = heldBound
			stateOf(test.before).Put(t, direct)
			grants := make(chan [2]string, 2)
			s.OnLateGrant(func(key, token string) { grants <- [2]string{key, token} })
			first, second, err := bothHeld(t, proxy, "EVAL", func() error { _, err := test.do(t, s); return err })
			if err == nil {
				t.Fatal("an answer arrived, although both sends are held")
			}
			first()
			if test.granted != "" {
				if got := suite.Receive(t, "a late grant", grants); got != [2]string{"k", tokenOf(test.granted)} {
					t.Errorf("late grant %v", got)
				}
			}
			second()
			if err := s.Close(t.Context()); err != nil { // both replies have arrived
				t.Fatal(err)
			}
			if test.granted == "" && len(grants) > 0 {
				t.Errorf("late grant %v", <-grants)
			}
			stateOf(test.after).Check(t, direct)
		})
	}
}

// A slow command is sent twice, and both sends have the reply that the script for shared leases
// has to follow.
func TestBothSendsMeetSharedLeases(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   transition
		want []string
	}{"enqueue": {enqueue, []string{"shared, left ttl"}}, "release": {release, []string{"nothing", "unsure"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, proxy, direct := behindProxy(t, storetest.LongReads)
			s.bound = heldBound
			stateOf("shared ttl | | | B1/2=ttl").Put(t, direct)
			first, seenFirst := proxy.HoldCommand(redistest.Named("EVAL"))
			second, seenSecond := proxy.HoldCommand(redistest.Named("EVAL"))
			t.Cleanup(func() { first(); second() })
			ended := make(chan outcome, 1)
			go func() { got, _ := test.do(t, s); ended <- got }()
			suite.Receive(t, "the first send is held", seenFirst)
			suite.Receive(t, "the second send is held", seenSecond)
			first()
			second()
			got := suite.Receive(t, "the transition ends", ended)
			isRight := slices.ContainsFunc(test.want, func(want string) bool {
				rounded := got
				rounded.round(outcomeOfText(want))
				return rounded == outcomeOfText(want)
			})
			if !isRight {
				t.Errorf("got %+v, want one of %q", got, test.want)
			}
		})
	}
}

// heldBound is the bound of a transition that is sent twice in vain. The second send follows
// after half of the bound, and a busy machine may need long for it.
const heldBound = 4 * time.Second

// bothHeld runs a transition until its bound ends, and holds both sends of the command with this
// name. It returns functions that release the sends, and the error of the transition.
func bothHeld(t *testing.T, proxy *redistest.Proxy, name string, do func() error) (first, second func(), err error) {
	t.Helper()
	first, seenFirst := proxy.HoldCommand(redistest.Named(name))
	second, seenSecond := proxy.HoldCommand(redistest.Named(name))
	t.Cleanup(func() { first(); second() })
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	suite.Receive(t, "the first send is held", seenFirst)
	suite.Receive(t, "the second send is held", seenSecond)
	return first, second, suite.Receive(t, "the transition ends", ended)
}
