package redisstore

import (
	"testing"

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

const tryAgain = "TRYAGAIN, temporary true, unknown false"

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
		question{"renew a shared lease", []string{"held, 0 waiting"}, renewalTo(s, renewed)},
		question{"release a shared lease", []string{"freed"}, releaseTo(s, released)},
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
			finish.Attempt, finish.Ending = storetest.AttemptRequest(mine.Token).Attempt, store.EndDone

			on := m.Cluster.BeginMove(m.tag, m.to)
			move(on)
			m.ask(t, s, append(all,
				question{"renew, without the queue", []string{"held, -1 waiting"}, renewalTo(s, mine)},
				question{"release, without the queue", []string{tryAgain}, releaseTo(s, mine)},
				question{"finish, without the queue", []string{tryAgain}, releaseTo(s, finish)},
				question{"enqueue, without the queue", []string{tryAgain}, enqueueTo(s, enqueue)},
				question{"begin, without the record", []string{tryAgain}, enqueueTo(s, begin)},
				m.share(s, m.reader(m.tag+name+"unread"), tryAgain),
				question{"renew a shared lease, without the queue", []string{"held, -1 waiting"}, renewalTo(s, reads)},
				question{"release a shared lease, without the queue", []string{tryAgain}, releaseTo(s, reads)},
				m.share(s, readsWhole, "granted"),
				question{"renew a shared lease, with the queue", []string{"held, 1 waiting"}, renewalTo(s, readsWhole)},
				question{"enqueue, with the queue", []string{whole.Token}, enqueueTo(s, rival)},
				question{"renew, with the queue", []string{"held, 1 waiting"}, renewalTo(s, whole)},
			)...)
			on.Finish()
			m.mustHold(t, append(free, mine, whole))
		})
	}
}
