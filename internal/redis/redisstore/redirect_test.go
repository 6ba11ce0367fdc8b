package redisstore

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The subtests share one cluster. Each subtest moves a slot of its own away from the first
// master, and the client under test does not know of the move.
func TestRedirects(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *movingSlot)
		fast bool // whether the commands are together in a batch in the fast tier
	}{
		{"moved slot", commandsFollowMovedSlot, true},
		{"moving slot", commandsSurviveMovingSlot, false},
		{"redirected reply is lost", lostRedirectedReplyIsResentOnce, true},
		{"client without redirects", clientWithoutRedirectsGetsTemporaryFaults, false},
	} {
		for name, together := range map[string]bool{"alone": false, "in a batch": true} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				if together != test.fast {
					suite.Full(t, "is one of all combinations of redirects and batches")
				}
				test.run(t, newMovingSlot(t, cluster, together))
			})
		}
	}
}

const (
	tryAgain   = "TRYAGAIN, temporary true, unknown false"
	movedFault = "MOVED, temporary true, unknown true"
	askFault   = "ASK, temporary true, unknown true"
)

// After MOVED, the commands go to the new master of the slot.
func commandsFollowMovedSlot(t *testing.T, m *movingSlot) {
	s := m.store(t, m.withPresentSlots(t))
	renewed, released := m.reader(m.tag+"renewed"), m.reader(m.tag+"released")
	for _, r := range []storetest.AnyRequest{renewed, released} {
		if got, err := s.Enqueue(t.Context(), r); err != nil || !got.Granted {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	m.Cluster.MoveSlot(m.tag, m.to)
	all, free := m.questions(t, s, "")
	m.ask(t, s, append(all,
		m.share(s, m.reader(m.tag+"shared"), "granted"),
		question{"renew a shared lease", []string{"held, 0 waiting"}, func(done func(string)) {
			s.Store.Renew(renewed.Renew(), func(got store.Renewal, err error) { done(renewalOf(got, err)) })
		}},
		question{"release a shared lease", []string{statusNames[store.Freed]}, func(done func(string)) {
			s.Store.Release(released.Release(), func(got store.ReleaseResult, _ error) { done(statusNames[got.Status]) })
		}},
	)...)
	m.mustHold(t, free)
	if n := m.Sent(m.from, free[0].Token); n != 1 && m.together {
		t.Errorf("%d commands of the batch were sent to the old master first", n)
	}
}

// While a slot moves, a command with one key succeeds on the side that has the key. A command
// with several keys succeeds if one side has them all. Otherwise it gets a temporary fault,
// and no other command of the batch does. Exception: a renewal succeeds with the lock alone, or
// with the lock and the set of a shared lease.
func commandsSurviveMovingSlot(t *testing.T, m *movingSlot) {
	s := m.store(t)
	for name, move := range map[string]func(*redistest.Move){
		"before": func(*redistest.Move) {},
		"halfway": func(on *redistest.Move) {
			on.Keys("p:"+m.tag+"halfwaymine", "p:"+m.tag+"halfwayheld0", "p:"+m.tag+"halfwayreads", "p:"+m.tag+"halfwayreads:s")
		},
		"after": func(on *redistest.Move) { m.moveAll(t, on) },
	} {
		t.Run(name, func(t *testing.T) {
			if m.Cluster.MasterOf(m.tag) != m.from {
				m.Cluster.MoveSlot(m.tag, m.from)
			}
			all, free := m.questions(t, s, name)
			mine, whole := m.Request(m.tag+name+"mine"), m.Request(m.tag+name+"whole")
			heldKey := m.tag + name + "held0"
			for _, r := range []storetest.AnyRequest{mine, whole} {
				if got, err := s.Take(t.Context(), r); err != nil || !got.Granted {
					t.Fatalf("%+v, %v", got, err)
				}
			}
			rival := m.Request(whole.Key) // so that the key has a queue
			if got := answerOf(s.Enqueue(t.Context(), rival)); got != whole.Token {
				t.Fatalf("enqueue: %q", got)
			}
			reads, readsWhole := m.reader(m.tag+name+"reads"), m.reader(m.tag+name+"readswhole")
			for _, r := range []storetest.AnyRequest{reads, readsWhole} {
				if got, err := s.Enqueue(t.Context(), r); err != nil || !got.Granted {
					t.Fatalf("%+v, %v", got, err)
				}
			}
			writer := m.Request(readsWhole.Key)
			if got, err := s.Enqueue(t.Context(), writer); err != nil || !got.Shared {
				t.Fatalf("%+v, %v", got, err)
			}
			enqueue := m.Request(heldKey)
			begin := m.Request(heldKey)
			begin.Attempt = storetest.AttemptRequest(begin.Token).Attempt
			finish := mine
			finish.Attempt, finish.Ending = storetest.AttemptRequest(mine.Token).Attempt, store.Seal

			on := m.Cluster.BeginMove(m.tag, m.to)
			move(on)
			m.ask(t, s, append(all,
				question{"renew, without the queue", []string{"held, -1 waiting"}, func(done func(string)) {
					s.Store.Renew(mine.Renew(), func(got store.Renewal, err error) { done(renewalOf(got, err)) })
				}},
				question{"release, without the queue", []string{tryAgain}, func(done func(string)) {
					s.Store.Release(mine.Release(), func(_ store.ReleaseResult, err error) { done(faultText(err)) })
				}},
				question{"finish, without the queue", []string{tryAgain}, func(done func(string)) {
					s.Store.Release(finish.Release(), func(_ store.ReleaseResult, err error) { done(faultText(err)) })
				}},
				question{"enqueue, without the queue", []string{tryAgain}, func(done func(string)) {
					s.Store.Enqueue(enqueue.Enqueue(), func(got store.Answer, err error) { done(answerOf(got, err)) })
				}},
				question{"begin, without the record", []string{tryAgain}, func(done func(string)) {
					s.Store.Enqueue(begin.Enqueue(), func(got store.Answer, err error) { done(answerOf(got, err)) })
				}},
				m.share(s, m.reader(m.tag+name+"unread"), tryAgain),
				question{"renew a shared lease, without the queue", []string{"held, -1 waiting"}, func(done func(string)) {
					s.Store.Renew(reads.Renew(), func(got store.Renewal, err error) { done(renewalOf(got, err)) })
				}},
				question{"release a shared lease, without the queue", []string{tryAgain}, func(done func(string)) {
					s.Store.Release(reads.Release(), func(_ store.ReleaseResult, err error) { done(faultText(err)) })
				}},
				m.share(s, readsWhole, "granted"),
				question{"renew a shared lease, with the queue", []string{"held, 1 waiting"}, func(done func(string)) {
					s.Store.Renew(readsWhole.Renew(), func(got store.Renewal, err error) { done(renewalOf(got, err)) })
				}},
				question{"enqueue, with the queue", []string{whole.Token}, func(done func(string)) {
					s.Store.Enqueue(rival.Enqueue(), func(got store.Answer, err error) { done(answerOf(got, err)) })
				}},
				question{"renew, with the queue", []string{"held, 1 waiting"}, func(done func(string)) {
					s.Store.Renew(whole.Renew(), func(got store.Renewal, err error) { done(renewalOf(got, err)) })
				}},
			)...)
			on.Finish()
			m.mustHold(t, append(free, mine, whole))
		})
	}
}

// The reply to a redirected command is lost like any other reply: the command is resent once,
// with the same token.
func lostRedirectedReplyIsResentOnce(t *testing.T, m *movingSlot) {
	for name, begin := range map[string]func() (finish func()){
		"during the move": func() func() { return m.Cluster.BeginMove(m.tag, m.to).Finish },
		"after the move":  func() func() { m.Cluster.MoveSlot(m.tag, m.to); return func() {} },
	} {
		t.Run(name, func(t *testing.T) {
			if m.Cluster.MasterOf(m.tag) != m.from {
				m.Cluster.MoveSlot(m.tag, m.from)
			}
			s := m.store(t)
			all, free := m.questions(t, s, name)
			finish := begin()
			dropped := m.ClusterProxies.To(m.to).DropReply(func(command []string) bool {
				return command[0] == "SET" && strings.HasSuffix(command[1], "free2")
			}, redistest.CloseConn)
			m.ask(t, s, all...)
			suite.Receive(t, "the reply is lost", dropped)
			finish()
			m.mustHold(t, free)
			for i, r := range free {
				if n := m.Sent(m.to, r.Token); n > 2 || n < 1 || (i == 2 && n != 2) {
					t.Errorf("number %d was sent to the new master %d times", i, n)
				}
			}
		})
	}
}

// A redirection is a temporary fault for a client that follows none. Once the client has loaded
// the slots again, the keys can be taken.
func clientWithoutRedirectsGetsTemporaryFaults(t *testing.T, m *movingSlot) {
	s := m.store(t, func(o *redis.ClusterOptions) { o.MaxRedirects = -1 })
	all, free := m.questions(t, s, "amid", askFault)
	on := m.Cluster.BeginMove(m.tag, m.to)
	m.ask(t, s, all...)
	for _, r := range free {
		if n := m.Sent(m.to, r.Token); n != 0 {
			t.Errorf("%s was sent to the new master %d times", r.Key, n)
		}
	}
	on.Finish()
	all, free = m.questions(t, s, "after", movedFault)
	m.ask(t, s, all...)
	for _, r := range free {
		suite.Eventually(t, r.Key+" is granted", func() bool {
			got := answerOf(s.Take(t.Context(), r))
			if got != "granted" && got != movedFault {
				t.Fatalf("got %q", got)
			}
			return got == "granted"
		})
	}
	m.mustHold(t, free)
}
