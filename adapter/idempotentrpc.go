package adapter

import (
	"context"
	"errors"
	"slices"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/answer"
	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/keytext"
)

// An IdempotentRPC is a middleware that runs the unary calls of an RPC framework once for their key.
// It is safe for concurrent use.
type IdempotentRPC[R any] struct {
	locker      *core.Locker
	key         *bridge.Bound[R]
	rpc         RPC[R]
	optionalKey []string // empty if the key is required
	fingerprint func(R) ([]byte, error)
	mistakes    *mistakeCheck
	unknown     func(RPCFailure) bool // nil means the default
	stored      func(code uint32) bool
}

// NewIdempotentRPC checks the arguments of a middleware as NewIdempotentHTTP does.
func NewIdempotentRPC[R any](
	n Name, middleware string, l *core.Locker, key core.Key[R], rpc RPC[R], opts []core.Option,
) (*IdempotentRPC[R], error) {
	l, err := idempotentView(n, middleware, bridge.RPCIdempotent, l, key, opts)
	if err != nil {
		return nil, err
	}
	own, err := ownFingerprint[R](n, l)
	if err != nil {
		return nil, err
	}
	if name := missingIn(rpc, "Implied", "Stored", "Unknown"); name != "" {
		return nil, n.Errorf("%s needs the function %s of its RPC", middleware, name)
	}
	set := bridge.SettingsOf(l)
	m := &IdempotentRPC[R]{locker: l, key: bind(l, key, true), rpc: rpc, optionalKey: set.OptionalKey, mistakes: newMistakeCheck(n, l, true)}
	if rpc.Unknown != nil {
		m.unknown = rpc.Unknown(l)
	}
	if rpc.Stored != nil {
		m.stored = rpc.Stored(l)
	}
	if m.stored == nil {
		m.stored = deterministic
	}
	if m.unknown == nil && set.FreeOnFailure {
		m.unknown = func(RPCFailure) bool { return false }
	}
	m.fingerprint = func(r R) ([]byte, error) { return keytext.ReadFor("", "", r, rpc.Fingerprint) }
	if own != nil {
		m.fingerprint = func(r R) ([]byte, error) { return keytext.ReadFor("WithFingerprint()", "", r, own) }
	}
	return m, nil
}

// Locker returns the Locker with the options of the middleware.
func (m *IdempotentRPC[R]) Locker() *core.Locker { return m.locker }

// RequireKey makes the middleware ignore core.WithOptionalKey, where the key itself says whether it is
// optional. It is for the time before the first call.
func (m *IdempotentRPC[R]) RequireKey() { m.optionalKey = nil }

// Begin begins the attempt of a call. If the RPCExchange is nil and there is no error, the call runs
// as without the middleware: it needs no key. With an error the call is refused. The Entry is valid
// in each case. Events have the name of core.WithName or Named, or else the method.
func (m *IdempotentRPC[R]) Begin(ctx context.Context, r R) (Entry, *RPCExchange[R], error) {
	entry := Entry{pass: newPass(ctx, true), mistakes: m.mistakes}
	entry.ctx = entry.pass.within(ctx)
	x, err := m.begin(entry.ctx, r) //nolint:contextcheck // derived from ctx
	if err != nil && !errors.Is(err, core.ErrSkip) {
		if x != nil { // the handler has run, even if its record cannot be read
			entry.pass.run()
			entry.Returned()
		}
		entry.pass.refuseBecauseOf(err)
		entry.mistakes = m.mistakes.unlessEnded(ctx, err)
		return entry, nil, err
	}
	entry.pass.run()
	if x != nil {
		x.entry = entry
	}
	return entry, x, nil
}

// begin is Begin for a call with the context of its Entry.
func (m *IdempotentRPC[R]) begin(ctx context.Context, r R) (*RPCExchange[R], error) {
	given := func(name string) bool { return len(m.rpc.Header(r, name)) > 0 }
	if len(m.optionalKey) > 0 && !slices.ContainsFunc(m.optionalKey, given) {
		return nil, core.ErrSkip
	}
	method := m.rpc.Method(r)
	key, err := m.key.ReadOne(ctx, r, method)
	if err != nil {
		m.mistakes.check(err)
		return nil, err
	}
	fingerprint, err := m.fingerprint(r)
	if err != nil {
		err = m.key.Refuse(ctx, key, err)
		m.mistakes.check(err)
		return nil, err
	}
	begun, err := m.key.Begin(ctx, key, "", method, fingerprint)
	if err != nil {
		return nil, err
	}
	x := &RPCExchange[R]{of: m, attempt: begun.(*core.Attempt)} //nolint:forcetypeassert // see bridge
	m.mistakes.checkNested(x.attempt, method)
	if stored, done := x.attempt.Replay(); done {
		reply, err := answer.DecodeReply(stored)
		if err != nil {
			return x, &core.Error{Kind: core.ErrUnreplayable, Cause: err}
		}
		x.answer, x.replayed = rpcAnswerOf(reply), true
	}
	return x, nil
}
