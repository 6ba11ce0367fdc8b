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

// TestRedirects shares one cluster among its tests. Each moves a slot of its own
// away from the first master, of which the client under test does not know.
//
//faults:row 19: TRYAGAIN
//faults:row 23
func TestRedirects(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *moving)
	}{
		{"a slot that has moved is followed", movedSlot},
		{"a slot on its way is answered rightly", slotOnItsWay},
		{"a redirected batch that breaks is sent again once", brokenRedirect},
		{"a client that follows nobody gets passing faults", followsNobody},
	} {
		for name, together := range map[string]bool{"alone": false, "in a batch": true} {
			t.Run(test.name+", "+name, func(t *testing.T) { test.run(t, newMoving(t, cluster, together)) })
		}
	}
}

// A moving is a slot that moves from one master to another, and keys that stay
// there.
type moving struct {
	*storetest.ClusterProxies
	storetest.Tokens
	tag, stays string // of the keys
	from, to   *redistest.Server
	direct     *redis.ClusterClient
	together   bool
}

func newMoving(t *testing.T, cluster *redistest.Cluster, together bool) *moving {
	t.Helper()
	m := &moving{ClusterProxies: storetest.NewClusterProxies(t, cluster), direct: cluster.Client(t), together: together}
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

// store returns one whose client knows where the slots are, and believes that for
// ever unless it is sent away. The server has its scripts.
func (m *moving) store(t *testing.T, configure ...func(*redis.ClusterOptions)) *syncStore {
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

// asOfNow makes a client believe for ever that the slots are where they are now. By
// itself it asks again, a moment after its first command.
func (m *moving) asOfNow(t *testing.T) func(*redis.ClusterOptions) {
	t.Helper()
	slots, err := m.direct.ClusterSlots(t.Context()).Result() //nolint:staticcheck // its answer is what ClusterOptions takes
	if err != nil {
		t.Fatal(err)
	}
	return func(o *redis.ClusterOptions) {
		o.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) { return slots, nil }
	}
}

// hold puts a foreign token into a key, that names it.
func (m *moving) hold(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := m.direct.Set(t.Context(), "p:"+key, "the holder of "+key, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// A question is a command for a key, and what has to be answered.
type question struct {
	what string
	want []string // one of them
	ask  func(done func(string))
}

// take asks for a key. The answer is granted, held by whom, or a fault.
func (m *moving) take(s *syncStore, key string, want ...string) (question, storetest.AnyRequest) {
	r := m.Request(key)
	return question{"take " + key, want, func(done func(string)) {
		s.Store.Take(r.Take(), func(got store.Answer, err error) { done(answerOf(got, err)) })
	}}, r
}

// answerOf is the answer to a take or an enqueue.
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

// renewalOf is the answer to a renewal.
func renewalOf(got store.Renewal, err error) string {
	if err != nil || !got.Held {
		return fmt.Sprintf("%+v, %v", got, err)
	}
	return fmt.Sprintf("held, %d in line", got.Waiting)
}

// faultText is the kind of a fault, and what the server said.
func faultText(err error) string {
	var fault *store.Fault
	if !errors.As(err, &fault) {
		return err.Error()
	}
	word, _, _ := strings.Cut(err.Error(), " ")
	return fmt.Sprintf("%s, passing %t, unknown %t", word, fault.Temporary, fault.Unknown)
}

const (
	tryAgain = "TRYAGAIN, passing true, unknown false"
	sentAway = "MOVED, passing true, unknown true"
	sentOn   = "ASK, passing true, unknown true"
)

// put asks the questions, one after the other or in one batch, and checks the
// answers. None of them may be another's.
func (m *moving) put(t *testing.T, s *syncStore, questions ...question) {
	t.Helper()
	answers, let := make([]chan string, len(questions)), func() {}
	if m.together {
		held, seen := m.ClusterProxies.To(m.from).HoldCommand(func(command []string) bool {
			return slices.ContainsFunc(command, func(word string) bool { return strings.HasSuffix(word, "first") })
		})
		first, _ := m.take(s, m.stays+"first", "granted")
		t.Cleanup(held)
		let = held
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
	let()
	for i, q := range questions {
		if got := storetest.Receive(t, q.what, answers[i]); !slices.Contains(q.want, got) {
			t.Errorf("%s: got %q, want one of %q", q.what, got, q.want)
		}
	}
}

// questions makes some for free keys and for keys that are held, of the slot that
// moves and of the one that stays. Those for the first one may be answered with
// these faults too. The requests are those for its free keys.
func (m *moving) questions(t *testing.T, s *syncStore, name string, faults ...string) (all []question, free []storetest.AnyRequest) {
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

// have fails the test unless each key has the token of its request.
func (m *moving) have(t *testing.T, requests []storetest.AnyRequest) {
	t.Helper()
	for _, r := range requests {
		if got, err := m.direct.Get(t.Context(), "p:"+r.Key).Result(); got != r.Token {
			t.Errorf("%s is %q, want %q, %v", r.Key, got, r.Token, err)
		}
	}
}

// MOVED leads the commands of the slot to its new master.
func movedSlot(t *testing.T, m *moving) {
	s := m.store(t, m.asOfNow(t))
	m.Cluster.MoveSlot(m.tag, m.to)
	all, free := m.questions(t, s, "")
	m.put(t, s, all...)
	m.have(t, free)
	if n := m.Sent(m.from, free[0].Token); n != 1 && m.together {
		t.Errorf("%d commands of the batch were sent to the old master first", n)
	}
}

// Amid the move of a slot, commands with one key are answered on the side that has
// it. Those with several keys are answered where one side has them all; else they
// get a passing fault, which is nobody else's, but for a renewal, which can do with
// the lock alone.
func slotOnItsWay(t *testing.T, m *moving) {
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
			whose := m.tag + name + "held0"
			for _, r := range []storetest.AnyRequest{mine, whole} {
				if got, err := s.Take(t.Context(), r); err != nil || !got.Granted {
					t.Fatalf("%+v, %v", got, err)
				}
			}
			rival := m.Request(whole.Key) // so that the key has a line
			if got := answerOf(s.Enqueue(t.Context(), rival)); got != whole.Token {
				t.Fatalf("enqueue: %q", got)
			}
			enqueue := m.Request(whose)
			begin := m.Request(whose)
			begin.Attempt = storetest.AttemptRequest(begin.Token).Attempt
			finish := mine
			finish.Attempt, finish.Ending = storetest.AttemptRequest(mine.Token).Attempt, store.Seal

			on := m.Cluster.BeginMove(m.tag, m.to)
			move(on)
			m.put(t, s, append(all,
				question{"renew, without a line", []string{"held, -1 in line"}, func(done func(string)) {
					s.Store.Renew(mine.Renew(), func(got store.Renewal, err error) { done(renewalOf(got, err)) })
				}},
				question{"release, without a line", []string{tryAgain}, func(done func(string)) {
					s.Store.Release(mine.Release(), func(_ store.ReleaseResult, err error) { done(faultText(err)) })
				}},
				question{"finish, without a line", []string{tryAgain}, func(done func(string)) {
					s.Store.Release(finish.Release(), func(_ store.ReleaseResult, err error) { done(faultText(err)) })
				}},
				question{"enqueue, without a line", []string{tryAgain}, func(done func(string)) {
					s.Store.Enqueue(enqueue.Enqueue(), func(got store.Answer, err error) { done(answerOf(got, err)) })
				}},
				question{"begin, without a record", []string{tryAgain}, func(done func(string)) {
					s.Store.Enqueue(begin.Enqueue(), func(got store.Answer, err error) { done(answerOf(got, err)) })
				}},
				question{"enqueue, with a line", []string{whole.Token}, func(done func(string)) {
					s.Store.Enqueue(rival.Enqueue(), func(got store.Answer, err error) { done(answerOf(got, err)) })
				}},
				question{"renew, with a line", []string{"held, 1 in line"}, func(done func(string)) {
					s.Store.Renew(whole.Renew(), func(got store.Renewal, err error) { done(renewalOf(got, err)) })
				}},
			)...)
			on.Finish()
			m.have(t, append(free, mine, whole))
		})
	}
}

// moveAll moves all keys of the slot, and does not tell that it has moved.
func (m *moving) moveAll(t *testing.T, on *redistest.Move) {
	t.Helper()
	keys, err := m.from.Client(t).ClusterGetKeysInSlot(t.Context(), m.Cluster.Slot(m.tag), 1000).Result()
	if err != nil {
		t.Fatal(err)
	}
	on.Keys(keys...)
}

// A connection that breaks after a command was sent on to another master is a lost
// reply like any other: the command is sent again with the same token, once.
func brokenRedirect(t *testing.T, m *moving) {
	for name, begin := range map[string]func() (finish func()){
		"amid the move":  func() func() { return m.Cluster.BeginMove(m.tag, m.to).Finish },
		"after the move": func() func() { m.Cluster.MoveSlot(m.tag, m.to); return func() {} },
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
			m.put(t, s, all...)
			storetest.Receive(t, "the reply is lost", dropped)
			finish()
			m.have(t, free)
			for i, r := range free {
				if n := m.Sent(m.to, r.Token); n > 2 || n < 1 || (i == 2 && n != 2) {
					t.Errorf("number %d was sent to the new master %d times", i, n)
				}
			}
		})
	}
}

// Where the client follows no redirection, its errors pass: once it has learned
// where the slot is, the keys work.
func followsNobody(t *testing.T, m *moving) {
	s := m.store(t, func(o *redis.ClusterOptions) { o.MaxRedirects = -1 })
	all, free := m.questions(t, s, "amid", sentOn)
	on := m.Cluster.BeginMove(m.tag, m.to)
	m.put(t, s, all...)
	for _, r := range free {
		if n := m.Sent(m.to, r.Token); n != 0 {
			t.Errorf("%s was sent on %d times", r.Key, n)
		}
	}
	on.Finish()
	all, free = m.questions(t, s, "after", sentAway)
	m.put(t, s, all...)
	for _, r := range free {
		for deadline := time.Now().Add(storetest.Patience); ; {
			got := answerOf(s.Take(t.Context(), r))
			if got == "granted" {
				break
			}
			if got != sentAway || time.Now().After(deadline) {
				t.Fatalf("got %q", got)
			}
		}
	}
	m.have(t, free)
}
