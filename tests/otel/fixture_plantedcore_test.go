package oteltest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/nethttplock"
)

// must ends the test with an error that the service does not expect.
func (p *planted) must(errs ...error) {
	p.Helper()
	if err := errors.Join(errs...); err != nil {
		p.Fatal(err)
	}
}

// refused keeps an error of the kind, or any error if kind is nil.
func (p *planted) refused(err, kind error) {
	p.Helper()
	if err == nil || kind != nil && !errors.Is(err, kind) {
		p.Errorf("got %v, want %v", err, kind)
	}
	p.fail(err)
}

// useLeases takes, loses and ends leases.
func (p *planted) useLeases() {
	ctx, locks := p.Context(), p.locks.With(core.WithWait(0), core.WithFencing(true))
	lease, err := locks.Lock(ctx, lockKey)
	p.must(err)
	p.token = lease.Token()
	set, err := locks.LockAll(ctx, []string{lockKey + "1", lockKey + "2"})
	p.must(err)
	reader, err := locks.With(core.WithShared(true), core.WithFencing(false)).Lock(ctx, lockKey+"3")
	p.must(err)
	p.print(lease, lease.Context(), set, set.Context(), set.Leases(), reader, locks, p.locks)
	p.dump(p.T, p.admin)

	_, err = locks.TryLock(ctx, lockKey)
	p.refused(err, core.ErrBusy)
	_, err = p.locks.With(core.WithWait(100*time.Millisecond)).Lock(ctx, lockKey)
	p.refused(err, core.ErrWaitTimeout)
	_, err = locks.With(core.WithShared(false)).Lock(reader.Context(), lockKey+"3")
	p.refused(err, core.ErrUpgrade)
	_, err = locks.TryLock(ctx, strings.Repeat(lockKey, 200))
	p.refused(err, core.ErrInvalidKey)
	_, err = core.Detach(ctx)
	p.refused(err, core.ErrNoLease)
	_, err = core.Detach(set.Context()) // it has no WithMaxHold
	p.refused(err, nil)
	p.must(p.admin.RPush(ctx, "reqlock:"+lockKey+"4", "a list").Err())
	_, err = locks.TryLock(ctx, lockKey+"4")
	p.refused(err, core.ErrUnavailable)
	p.must(p.admin.Del(ctx, "reqlock:"+lockKey).Err())
	p.refused(lease.Release(ctx), core.ErrLost)
	p.must(set.Release(ctx), reader.Release(ctx))
	p.handOver(locks)
}

// handOver hands a lease over, and looks at the key meanwhile.
func (p *planted) handOver(locks *core.Locker) {
	ctx := p.Context()
	lease, err := locks.Lock(ctx, lockKey)
	p.must(err)
	ticket, err := lease.Handover(ctx, time.Minute)
	p.must(err)
	text, err := ticket.MarshalText()
	p.must(err)
	_, encoded, _ := strings.Cut(string(text), ".")
	decoded, err := base64.RawURLEncoding.DecodeString(encoded)
	p.must(err)
	p.ticket = strings.TrimSuffix(string(decoded), lockKey)
	p.add(inPrinted, fmt.Sprintf("%v %+v %#v %s", ticket, ticket, ticket, &ticket)) // as JSON it is itself
	i, err := inspect.New(p.admin)
	p.must(err)
	seen, err := i.Lock(ctx, lockKey)
	p.must(err)
	p.print(seen)
	p.dump(p.T, p.admin)
	lease, err = locks.Accept(ctx, ticket)
	p.must(err)
	p.refused(errorOf(locks.Accept(ctx, ticket)), core.ErrChanged)
	p.must(lease.Release(ctx))
}

// useAttempts runs an attempt, and has one whose outcome an operator resolves.
func (p *planted) useAttempts() {
	ctx, locks := p.Context(), p.locks.With(core.WithSealer(p.sealer))
	key, err := core.EndpointKey(http.MethodPost, "POST /direct", userOfRequest, requestKey)
	p.must(err)
	fingerprint := sha256.Sum256([]byte(requestBody))
	attempt, err := locks.Begin(ctx, key, fingerprint[:])
	p.must(err)
	p.print(attempt, attempt.Lease(), attempt.Lease().Context())
	p.refused(errorOf(locks.Begin(ctx, key, fingerprint[:])), core.ErrBusy)
	p.must(attempt.Unknown(ctx, errors.New("the bank did not answer")))
	p.refused(errorOf(locks.Begin(ctx, key, fingerprint[:])), core.ErrOutcomeUnknown)

	record, err := locks.ReadRecord(ctx, key)
	p.must(err)
	answer, err := nethttplock.NewAnswer(http.StatusCreated, http.Header{"Location": {sealedAnswer}}, []byte(sealedAnswer))
	p.must(err)
	p.print(record, record.Attempt, answer, core.Answered(answer))
	acting, err := core.AsOperator(ctx, "ada", operatorReason)
	p.must(err, locks.Resolve(acting, key, core.Answered(answer), record.Attempt))
	p.refused(locks.Resolve(ctx, key, core.NotDone(), record.Attempt), core.ErrChanged)
	replay, err := locks.Begin(ctx, key, fingerprint[:])
	p.must(err)
	p.print(replay)
	p.refused(errorOf(locks.Begin(ctx, key, []byte("other"))), core.ErrMismatch)
	p.refused(errorOf(p.locks.Begin(ctx, key, fingerprint[:])), core.ErrUnreplayable) // it has no Sealer
	_, err = locks.ReadRecord(ctx, "none")
	p.refused(err, core.ErrNotFound)
}

// makeMistakes has the errors and the panics of mistakes, with what a program prints by mistake.
func (p *planted) makeMistakes() {
	secret := []byte(hmacSecret)
	key := nethttplock.Header("X-Email").HMAC(secret)
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, "/", http.NoBody)
	p.must(err)
	r.Header.Set("X-Email", hiddenKey)
	read, err := key.Read(r)
	p.must(err)
	plain, err := core.Getter(func(key string) string { return key }).Read(lockKey)
	p.must(err)
	p.print(key, read, plain, p.sealer, core.WithSealer(p.sealer), core.WithName("payments"))

	_, err = core.NewAESSealer("now", map[string][]byte{"now": []byte(sealKey + "0")})
	p.refused(err, nil)
	_, err = core.EndpointKey("", "", requestKey)
	p.refused(err, nil)
	for what, register := range map[string]func(){
		"an option of answers": func() { nethttplock.Middleware(p.locks, key, core.WithSealer(p.sealer)) },
		"a key twice named":    func() { key.Named("a:b") },
		"no locker":            func() { nethttplock.Middleware(nil, key) },
	} {
		if text := p.panics(register); !strings.HasPrefix(text, "reqlock: ") {
			p.Errorf("%s: %q", what, text)
		}
	}

	wrong := newLocker(p.T, p.client(redisPassword+"0"), core.WithLogger(nil))
	p.refused(wrong.Check(p.Context()), core.ErrUnavailable)
	_, err = wrong.TryLock(p.Context(), lockKey)
	p.refused(err, core.ErrUnavailable)
}

// endServer has an outage, and closes the Locker.
func (p *planted) endServer() {
	server := p.serve(true)
	p.server.Kill()
	p.want(server, "/now/"+lockKey, "", http.StatusServiceUnavailable)
	p.want(server, "/sealed", requestBody, http.StatusServiceUnavailable)
	_, err := p.locks.With(core.WithWait(0)).Lock(p.Context(), lockKey)
	p.refused(err, core.ErrUnavailable)
	p.fail(p.locks.Close(context.WithoutCancel(p.Context())))
	_, err = p.locks.TryLock(p.Context(), lockKey)
	p.refused(err, core.ErrClosed)
}

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }
