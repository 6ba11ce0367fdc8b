package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// The subtests share one cluster. Each subtest moves a slot of its own away from the first
// master, and the client under test does not know of the move.
//
//faults:row 19: TRYAGAIN
//faults:row 23
func TestRedirects(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *movingSlot)
	}{
		{"moved slot", commandsFollowMovedSlot},
		{"moving slot", commandsSurviveMovingSlot},
		{"redirected reply is lost", lostRedirectedReplyIsResentOnce},
		{"client without redirects", clientWithoutRedirectsGetsTemporaryFaults},
	} {
		for name, together := range map[string]bool{"alone": false, "in a batch": true} {
			t.Run(test.name+", "+name, func(t *testing.T) { test.run(t, newMovingSlot(t, cluster, together)) })
		}
	}
}

// A movingSlot is a slot that moves from one master to another, and a slot that stays.
type movingSlot struct {
	*storetest.ClusterProxies
	storetest.Tokens
	tag, stays string // hash tags of the slot that moves and of the slot that stays
	from, to   *redistest.Server
	direct     *redis.ClusterClient
	together   bool
}

func newMovingSlot(t *testing.T, cluster *redistest.Cluster, together bool) *movingSlot {
	t.Helper()
	m := &movingSlot{ClusterProxies: storetest.NewClusterProxies(t, cluster), direct: cluster.Client(t), together: together}
	masters := cluster.Masters()
	m.from, m.to = masters[0], masters[1]
	for i := 0; m.tag == "" || m.stays == ""; i++ {
		tag := fmt.Sprintf("{%s%d}", t.Name(), i)
		switch {
		case cluster.MasterOf(tag) != m.from:
		case m.tag == "":
			m.tag = tag
		default:
			m.stays = tag
		}
	}
	return m
}

// store returns a store with a client that has loaded the slots, and that loads them again only
// after a redirection. The servers have the scripts.
func (m *movingSlot) store(t *testing.T, configure ...func(*redis.ClusterOptions)) *syncStore {
	t.Helper()
	s := newStore(t, m.Client(t, configure...))
	r := m.Request(m.stays + "known" + m.Next())
	if got, err := s.Take(t.Context(), r); err != nil || !got.Granted {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, source := range []script.Script{s.scripts.Enqueue, s.scripts.Renew, s.scripts.Release, s.scripts.Begin, s.scripts.Finish} {
		for _, node := range []*redistest.Server{m.from, m.to} {
			if err := node.Client(t).ScriptLoad(t.Context(), source.Source.(string)).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// withPresentSlots makes a client use the present slots for ever. Without it, the client loads
// the slots again a moment after its first command.
func (m *movingSlot) withPresentSlots(t *testing.T) func(*redis.ClusterOptions) {
	t.Helper()
	slots, err := m.direct.ClusterSlots(t.Context()).Result() //nolint:staticcheck // its answer is what ClusterOptions takes
	if err != nil {
		t.Fatal(err)
	}
	return func(o *redis.ClusterOptions) {
		o.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) { return slots, nil }
	}
}

// hold locks keys with a foreign token, which names the key.
func (m *movingSlot) hold(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := m.direct.Set(t.Context(), "p:"+key, "the holder of "+key, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// A question is a request for a key, with the answers that are right.
type question struct {
	what string
	want []string // one of them
	ask  func(done func(string))
}

// take returns a question: a take of a key. The answer is "granted", the holder, or a fault.
func (m *movingSlot) take(s *syncStore, key string, want ...string) (question, storetest.AnyRequest) {
	r := m.Request(key)
	return question{"take " + key, want, func(done func(string)) {
		s.Store.Take(r.Take(), func(got store.Answer, err error) { done(answerOf(got, err)) })
	}}, r
}

// answerOf returns the answer to a take or an enqueue as text.
func answerOf(got store.Answer, err error) string {
	switch {
	case err != nil:
		return faultText(err)
	case got.Granted:
		return "granted"
	default:
		return got.Holder
	}
}

// renewalOf returns the answer to a renewal as text.
func renewalOf(got store.Renewal, err error) string {
	if err != nil || !got.Held {
		return fmt.Sprintf("%+v, %v", got, err)
	}
	return fmt.Sprintf("held, %d waiting", got.Waiting)
}

// faultText returns the first word of the error and the kind of the fault.
func faultText(err error) string {
	var fault *store.Fault
	if !errors.As(err, &fault) {
		return err.Error()
	}
	first, _, _ := strings.Cut(err.Error(), " ")
	return fmt.Sprintf("%s, temporary %t, unknown %t", first, fault.Temporary, fault.Unknown)
}

const (
	tryAgain   = "TRYAGAIN, temporary true, unknown false"
	movedFault = "MOVED, temporary true, unknown true"
	askFault   = "ASK, temporary true, unknown true"
)

// ask asks the questions, one after the other or in one batch, and checks the answers.
func (m *movingSlot) ask(t *testing.T, s *syncStore, questions ...question) {
	t.Helper()
	answers, release := make([]chan string, len(questions)), func() {}
	if m.together {
		held, seen := m.ClusterProxies.To(m.from).HoldCommand(func(command []string) bool {
			return slices.ContainsFunc(command, func(arg string) bool { return strings.HasSuffix(arg, "first") })
		})
		first, _ := m.take(s, m.stays+"first", "granted")
		t.Cleanup(held)
		release = held
		first.ask(func(string) {})
		storetest.Receive(t, "the lane is busy", seen)
	}
	for i, q := range questions {
		answers[i] = make(chan string, 1)
		q.ask(func(got string) { answers[i] <- got })
		if !m.together {
			answers[i] <- storetest.Receive(t, q.what, answers[i])
		}
	}
	release()
	for i, q := range questions {
		if got := storetest.Receive(t, q.what, answers[i]); !slices.Contains(q.want, got) {
			t.Errorf("%s: got %q, want one of %q", q.what, got, q.want)
		}
	}
}

// questions returns questions for free keys and for held keys, of the slot that moves and of
// the slot that stays. The answers for the slot that moves may also be one of the faults. The
// requests are those for the free keys of the slot that moves.
func (m *movingSlot) questions(t *testing.T, s *syncStore, name string, faults ...string) (all []question, free []storetest.AnyRequest) {
	t.Helper()
	for i := range 4 {
		for _, tag := range []string{m.tag, m.stays} {
			var may []string
			if tag == m.tag {
				may = faults
			}
			held := fmt.Sprint(tag, name, "held", i)
			m.hold(t, held)
			p, _ := m.take(s, held, append(may, "the holder of "+held)...)
			q, r := m.take(s, fmt.Sprint(tag, name, "free", i), append(may, "granted")...)
			all = append(all, p, q)
			if tag == m.tag {
				free = append(free, r)
			}
		}
	}
	return all, free
}

// mustHold fails the test unless each key has the token of its request.
func (m *movingSlot) mustHold(t *testing.T, requests []storetest.AnyRequest) {
	t.Helper()
	for _, r := range requests {
		if got, err := m.direct.Get(t.Context(), "p:"+r.Key).Result(); got != r.Token {
			t.Errorf("%s is %q, want %q, %v", r.Key, got, r.Token, err)
		}
	}
}

// After MOVED, the commands go to the new master of the slot.
func commandsFollowMovedSlot(t *testing.T, m *movingSlot) {
	s := m.store(t, m.withPresentSlots(t))
	m.Cluster.MoveSlot(m.tag, m.to)
	all, free := m.questions(t, s, "")
	m.ask(t, s, all...)
	m.mustHold(t, free)
	if n := m.Sent(m.from, free[0].Token); n != 1 && m.together {
		t.Errorf("%d commands of the batch were sent to the old master first", n)
	}
}

// While a slot moves, a command with one key succeeds on the side that has the key. A command
// with several keys succeeds if one side has them all. Otherwise it gets a temporary fault,
// and no other command of the batch does. Exception: a renewal succeeds with the lock alone.
func commandsSurviveMovingSlot(t *testing.T, m *movingSlot) {
	s := m.store(t)
	for name, move := range map[string]func(*redistest.Move){
		"before":  func(*redistest.Move) {},
		"halfway": func(on *redistest.Move) { on.Keys("p:"+m.tag+"halfwaymine", "p:"+m.tag+"halfwayheld0") },
		"after":   func(on *redistest.Move) { m.moveAll(t, on) },
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

// moveAll moves all keys of the slot, but does not finish the move.
func (m *movingSlot) moveAll(t *testing.T, on *redistest.Move) {
	t.Helper()
	keys, err := m.from.Client(t).ClusterGetKeysInSlot(t.Context(), m.Cluster.Slot(m.tag), 1000).Result()
	if err != nil {
		t.Fatal(err)
	}
	on.Keys(keys...)
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
			storetest.Receive(t, "the reply is lost", dropped)
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
		for deadline := time.Now().Add(storetest.Patience); ; {
			got := answerOf(s.Take(t.Context(), r))
			if got == "granted" {
				break
			}
			if got != movedFault || time.Now().After(deadline) {
				t.Fatalf("got %q", got)
			}
		}
	}
	m.mustHold(t, free)
}
