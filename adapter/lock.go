package adapter

import (
	"context"
	"slices"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// A Lock is a middleware that runs requests under the locks of a key. It is safe for concurrent use.
type Lock[R any] struct {
	locker   *core.Locker
	bound    *bridge.Bound[R]
	wait     *waitCheck
	mistakes *mistakeCheck
	isRPC    bool
}

// NewLock checks the arguments of a middleware. middleware is its name in errors, and n that of its
// package. The error says which argument is wrong: a nil Locker, a zero Key, an option that is
// invalid, belongs to another adapter or has no effect on a lock, SharedWhen without
// core.WithWait above 0, and Permits or Shared that the Locker refuses: see core.WithPermits.
//
// For core.WithCaller, NewLock remembers the code that called the package of its caller.
func NewLock[R any](n Name, middleware string, l *core.Locker, key core.Key[R], opts []core.Option) (*Lock[R], error) {
	return newLock(n, middleware, bridge.HTTPLock, l, key, opts)
}

// NewLockRPC is NewLock for an RPC framework: see RPC.Refused and RPC.Returned.
func NewLockRPC[R any](n Name, middleware string, l *core.Locker, key core.Key[R], opts []core.Option) (*Lock[R], error) {
	return newLock(n, middleware, bridge.RPCLock, l, key, opts)
}

// newLock is NewLock for a kind of middleware.
func newLock[R any](
	n Name, middleware string, kind bridge.Middleware, l *core.Locker, key core.Key[R], opts []core.Option,
) (*Lock[R], error) {
	if err := check(n, middleware, l, key); err != nil {
		return nil, err
	}
	l, err := view(n, middleware, kind, l, opts)
	about := bridge.AboutOf(key)
	limitsBody := func(opt core.Option) bool { return bridge.NameOf(opt) == "WithMaxBody" }
	switch {
	case err != nil:
		return nil, err
	case about.NeedsWait && bridge.FactsOf(l).MaxWait == 0:
		return nil, n.Errorf("SharedWhen needs core.WithWait above 0: without it, reads can refuse a write for ever")
	case bridge.CheckLimits(l, key) != nil:
		return nil, n.Errorf("%w", bridge.CheckLimits(l, key))
	case !about.ReadsBody && slices.ContainsFunc(opts, limitsBody):
		return nil, n.Errorf("core.WithMaxBody has no effect on %s, whose key does not read the body: leave it out", middleware)
	}
	isRPC := kind == bridge.RPCLock
	return &Lock[R]{l, bind(l, key, false), newWaitCheck(n, l), newMistakeCheck(n, l, isRPC), isRPC}, nil
}

// Locker returns the Locker with the options of the middleware.
func (m *Lock[R]) Locker() *core.Locker { return m.locker }

// Enter takes the locks of a request, as core.Enter does. With an error the request is refused. The
// Entry is valid in each case.
//
// The observers get core.Warned events, each once, of a wait that is longer than the WriteTimeout of
// the http.Server, and of a mistake of the program that refuses requests: a route that lacks the
// parameter of a PathKey, or a key that no client sends and that is empty. Entry.Refuse and the like
// send those of a key that fails, because the program may have another answer for it. Entry.Request, and
// Enter for an RPC, send one of another middleware outside with the same key.
func (m *Lock[R]) Enter(ctx context.Context, r R) (Entry, error) {
	entry, _, err := m.EnterUnless(ctx, r, nil)
	return entry, err
}

// EnterUnless is Enter for a stream whose first message may be missing. If *drop is true after the
// key was read, it takes no lock, and reports nothing: the stream enters again later. entered is
// false then, and the Entry is not valid. A nil drop counts as false.
func (m *Lock[R]) EnterUnless(ctx context.Context, r R, drop *bool) (entry Entry, entered bool, err error) {
	m.wait.check(ctx)
	entry = Entry{wait: m.wait, pass: newPass(ctx, m.isRPC), mistakes: m.mistakes}
	entry.ctx, entry.held, err = m.bound.Enter(entry.pass.within(ctx), r, drop)
	switch {
	case err != nil:
		m.mistakes.check(err)
		entry.held, entry.mistakes = nil, m.mistakes.unlessEnded(ctx, err)
		entry.pass.refuseBecauseOf(err)
	case entry.held == nil:
		entry.pass.leave()
		return Entry{}, false, nil
	default:
		if m.isRPC {
			m.mistakes.checkTwice(entry.held, "")
		}
		entry.pass.run()
	}
	return entry, true, err
}
