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
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

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
	for _, source := range []script.Script{
		s.scripts.Enqueue, s.scripts.Renew, s.scripts.Release, s.scripts.Begin, s.scripts.Finish,
		s.scripts.SharedAsk, s.scripts.SharedRenew, s.scripts.SharedRelease,
	} {
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

// reader returns a request for a shared lease of a key.
func (m *movingSlot) reader(key string) storetest.AnyRequest {
	r := m.Request(key)
	process, _, number, _ := store.ParseToken(r.Token)
	r.Limit = store.Unlimited
	r.Token = store.NewToken(process, r.Limit, number)
	return r
}

// share returns a question: an ask for a shared lease. The answers are those of take.
func (m *movingSlot) share(s *syncStore, r storetest.AnyRequest, want ...string) question {
	return question{"share " + r.Key, want, enqueueTo(s, r)}
}

// renewalTo, releaseTo and enqueueTo return the ask of a question.
func renewalTo(s *syncStore, r storetest.AnyRequest) func(done func(string)) {
	return func(done func(string)) {
		s.Store.Renew(r.Renew(), func(got store.Renewal, err error) { done(renewalOf(got, err)) })
	}
}

func releaseTo(s *syncStore, r storetest.AnyRequest) func(done func(string)) {
	return func(done func(string)) {
		s.Store.Release(r.Release(), func(got store.ReleaseResult, err error) {
			if err != nil {
				done(faultText(err))
				return
			}
			done(statusNames[got.Status])
		})
	}
}

func enqueueTo(s *syncStore, r storetest.AnyRequest) func(done func(string)) {
	return func(done func(string)) {
		s.Store.Enqueue(r.Enqueue(), func(got store.Answer, err error) { done(answerOf(got, err)) })
	}
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
		suite.Receive(t, "the lane is busy", seen)
	}
	for i, q := range questions {
		answers[i] = make(chan string, 1)
		q.ask(func(got string) { answers[i] <- got })
		if !m.together {
			answers[i] <- suite.Receive(t, q.what, answers[i])
		}
	}
	release()
	for i, q := range questions {
		if got := suite.Receive(t, q.what, answers[i]); !slices.Contains(q.want, got) {
			t.Errorf("%s: got %q, want one of %q", q.what, got, q.want)
		}
	}
}

// questions returns questions for free keys and for held keys, of the slot that moves and of
// the slot that stays. The requests are those for the free keys of the slot that moves.
func (m *movingSlot) questions(t *testing.T, s *syncStore, name string) (all []question, free []storetest.AnyRequest) {
	t.Helper()
	for i := range 4 {
		for _, tag := range []string{m.tag, m.stays} {
			held := fmt.Sprint(tag, name, "held", i)
			m.hold(t, held)
			p, _ := m.take(s, held, "the holder of "+held)
			q, r := m.take(s, fmt.Sprint(tag, name, "free", i), "granted")
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

// moveAll moves all keys of the slot, but does not finish the move.
func (m *movingSlot) moveAll(t *testing.T, on *redistest.Move) {
	t.Helper()
	keys, err := m.from.Client(t).ClusterGetKeysInSlot(t.Context(), m.Cluster.Slot(m.tag), 1000).Result()
	if err != nil {
		t.Fatal(err)
	}
	on.Keys(keys...)
}
