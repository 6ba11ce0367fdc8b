package readiness

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
)

// checkLife is how long the keys and the record of a Check live at least, should
// it not come to deleting them.
const checkLife = 5 * time.Second

// A scene is the life of a lock and of an idempotent request, played by two
// waiters on a key that is nobody's.
type scene struct {
	check   *Check
	target  target
	store   *redisstore.Store
	names   keyspace.Names
	scripts script.Set
	process string
	told    chan string // tokens that messages name
	deaf    error       // why messages do not come, if they do not
	begun   bool        // there may be keys
}

// The faults of a scene in which each command was answered.
var (
	errNoSubscription = errors.New("a subscription is not acknowledged within the command timeout")
	errNoMessage      = errors.New("a message does not arrive within the command timeout")
	errForgets        = errors.New("redis does not keep what it was told")
)

func (c *Check) newScene(t target) (*scene, error) {
	process := redisstore.NewProcess()
	st, err := redisstore.New(c.rdb, c.prefix, process, c.replicas)
	if err != nil {
		return nil, err
	}
	s := &scene{
		check: c, target: t, store: st, names: keyspace.New(c.prefix), scripts: script.New(c.replicas.Wanted()),
		process: process, told: make(chan string, 16),
	}
	st.OnHint(func(_, token string) {
		select {
		case s.told <- token:
		default: // nobody reads any more
		}
	})
	return s, nil
}

// play returns the first thing that goes wrong. What pub/sub refuses does not keep
// the rest from being played, which goes without it, only slower.
//
// The fence comes last: it lives for days, and by then it is known that it can
// be deleted.
func (s *scene) play(ctx context.Context) error {
	ready, stop := s.store.Listen(s.target.key)
	defer stop()
	for _, act := range [...]func(context.Context) error{
		s.lock, s.elsewhere, s.lockByScript, s.attempt, s.ask, s.hear,
		func(ctx context.Context) error { return s.handOver(ctx, ready) },
		s.sweep,
	} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return s.deaf
}

// lock takes the key, sees that nobody else gets it, renews it, and frees it.
func (s *scene) lock(ctx context.Context) error {
	taken, err := perform(ctx, s.store.Take, store.TakeRequest{Target: s.request(1)})
	var fault *store.Fault
	s.begun = err == nil || errors.As(err, &fault) && fault.Unknown
	if err != nil {
		return err
	}
	second := store.TakeRequest{Target: s.request(2), WithHolder: true}
	refused, err := perform(ctx, s.store.Take, second)
	if err != nil {
		return err
	}
	longer := s.request(1)
	longer.TTL *= 2
	renewed, err := perform(ctx, s.store.Renew, store.RenewRequest{Target: longer})
	if err != nil {
		return err
	}
	brief := s.release(longer)
	brief.NoWaiters = true
	released, err := perform(ctx, s.store.Release, brief)
	if err != nil {
		return err
	}
	return forgetsUnless(taken.Granted && !refused.Granted && renewed.Held && released.Status == store.Freed)
}

// lockByScript sends the source of a script, as is needed after each restart of
// a server.
func (s *scene) lockByScript(ctx context.Context) error {
	r := s.request(3)
	eval := command.New(3, []any{"eval", s.scripts.Take.Source, 1, s.name(), r.Token, r.TTL.Milliseconds()})
	if err := s.send(ctx, eval); err != nil {
		return err
	}
	released, err := perform(ctx, s.store.Release, s.release(r))
	if err != nil {
		return err
	}
	return forgetsUnless(released.Status == store.Freed)
}

// attempt begins an idempotent request, is done, and gets its answer the next
// time.
func (s *scene) attempt(ctx context.Context) error {
	first, again := s.enqueue(s.request(4)), s.enqueue(s.request(5))
	first.Attempt = &store.Attempt{Fingerprint: []byte(checkMark), Keep: first.TTL}
	again.Attempt = first.Attempt
	commit := s.release(first.Target)
	commit.Attempt, commit.Ending, commit.Record = first.Attempt, store.Commit, []byte("done")
	begun, err := perform(ctx, s.store.Enqueue, first)
	if err != nil {
		return err
	}
	renewed, err := perform(ctx, s.store.Renew, store.RenewRequest{Target: first.Target, Attempt: first.Attempt})
	if err != nil {
		return err
	}
	committed, err := perform(ctx, s.store.Release, commit)
	if err != nil {
		return err
	}
	replayed, err := perform(ctx, s.store.Enqueue, again)
	if err != nil {
		return err
	}
	running, err := perform(ctx, s.store.Resolve, store.ResolveRequest{Key: s.target.key, Bound: s.check.bound})
	if err != nil {
		return err
	}
	return forgetsUnless(begun.Granted && renewed.Held && committed.Record == store.WasStored &&
		replayed.Verdict == store.Done && bytes.Equal(replayed.Record, commit.Record) && !running)
}

// handOver lets one wait for another, who hands the key to him and tells him.
func (s *scene) handOver(ctx context.Context, ready <-chan struct{}) error {
	if s.deaf == nil {
		if err := s.await(ctx, ready, errNoSubscription); err != nil {
			return err
		}
	}
	holder, waiter := s.enqueue(s.request(6)), s.enqueue(s.request(7))
	waiter.Join = true
	granted, err := perform(ctx, s.store.Enqueue, holder)
	if err != nil {
		return err
	}
	waiting, err := perform(ctx, s.store.Enqueue, waiter)
	if err != nil {
		return err
	}
	released, err := perform(ctx, s.store.Release, s.release(holder.Target))
	if err != nil {
		return err
	}
	if s.deaf == nil {
		if err := s.awaitMessage(ctx, waiter.Token); err != nil {
			return err
		}
	}
	waiter.Fences = 1
	confirmed, err := perform(ctx, s.store.Enqueue, waiter)
	if err != nil {
		return err
	}
	renewed, err := perform(ctx, s.store.Renew, store.RenewRequest{Target: waiter.Target, Fences: waiter.Fences})
	if err != nil {
		return err
	}
	freed, err := perform(ctx, s.store.Release, s.release(waiter.Target))
	if err != nil {
		return err
	}
	handed := s.deaf != nil || released.Status == store.Handed
	return forgetsUnless(granted.Granted && !waiting.Granted && handed && confirmed.Granted &&
		renewed.Held && renewed.Fence > confirmed.Fence && freed.Status == store.Freed)
}

// awaitMessage waits for the message that names the token.
func (s *scene) awaitMessage(ctx context.Context, token string) error {
	arrived := make(chan struct{})
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case named := <-s.told:
				if named == token {
					close(arrived)
					return
				}
			case <-over:
				return
			}
		}
	}()
	return s.await(ctx, arrived, errNoMessage)
}

// await waits for the channel to be closed, as long as a command may take. What
// is deaf is noted, and is no error yet.
func (s *scene) await(ctx context.Context, closed <-chan struct{}, deaf error) error {
	timer := time.NewTimer(s.check.bound)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
		s.deaf = deaf
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// sweep deletes what is left: the record and the fence.
func (s *scene) sweep(ctx context.Context) error {
	lock := s.name()
	companion := func(suffix string) string { return s.names.Companion(lock, suffix) }
	err := s.send(ctx, command.New(1, []any{"del", lock, companion(keyspace.QueueSuffix), companion(keyspace.FenceSuffix), companion(keyspace.RecordSuffix)}))
	if err == nil {
		s.begun = false
	}
	return err
}

// end deletes what is left of a scene that has failed, and waits for what was
// left behind.
func (s *scene) end() {
	_ = s.store.Close(context.Background())
	if s.begun {
		_ = s.sweep(context.Background())
	}
}

// send sends a command that is no transition, once.
func (s *scene) send(ctx context.Context, cmd *command.Generic) error {
	return s.check.within(ctx, func(ctx context.Context) error {
		_, err := cmd.Reply(s.target.node.Process(ctx, cmd))
		return err
	})
}

// name is the name of the lock.
func (s *scene) name() string { return s.names.Lock(s.target.key) }

// request returns the target of the n-th token.
func (s *scene) request(n int) store.Target {
	return store.Target{
		Key:   s.target.key,
		Token: s.process + ":" + strconv.Itoa(n),
		TTL:   s.life(),
		Bound: s.check.bound,
	}
}

// life returns the TTL of the probe's keys.
func (s *scene) life() time.Duration { return max(checkLife, 4*s.check.bound) }

// enqueue returns an Enqueue of the target.
func (s *scene) enqueue(r store.Target) store.EnqueueRequest {
	return store.EnqueueRequest{Target: r, Claim: s.life()}
}

// release returns a Release of the target.
func (s *scene) release(r store.Target) store.ReleaseRequest {
	return store.ReleaseRequest{Target: r, Claim: s.life()}
}

// perform waits for the answer of a transition, or for the end of ctx.
func perform[R, A any](ctx context.Context, do func(R, func(A, error)), r R) (A, error) {
	type result struct {
		answer A
		err    error
	}
	settled := make(chan result, 1)
	do(r, func(answer A, err error) { settled <- result{answer, err} })
	select {
	case got := <-settled:
		return got.answer, got.err
	case <-ctx.Done():
		var none A
		return none, ctx.Err()
	}
}

// forgetsUnless returns errForgets unless all answers were as they should be.
func forgetsUnless(well bool) error {
	if well {
		return nil
	}
	return errForgets
}
