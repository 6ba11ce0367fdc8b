package conformance

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

// grpcKeyScenarios test keys and their scopes.
func grpcKeyScenarios() []grpcScenario {
	return []grpcScenario{
		{"key: missing", keyMissing},
		{"key: missing, and optional", keyMissingOptional},
		{"key: malformed", keyForms},
		{"key: quoted and unquoted are the same key", keyQuoted},
		{"key: the longest, and one byte more", keyLong},
		{"key: given twice", keyTwice},
		{"key: the application requires a format", keyOwnForm},
		{"key: other metadata", keyOtherName},
		{"scope: another user with the same key", scopeUser},
		{"scope: another method with the same key", scopeMethod},
		{"scope: users and keys that are equal when joined", scopeParts},
		{"scope: a right that is revoked before the copy", scopeRight},
	}
}

func keyMissing(b *grpcEnvironment) {
	p := b.serve(nil)
	p.wantRefused(p.call(b.Context(), paid), refused(core.ErrNoKey, 0))
	p.wantRefused(p.send(b.Context(), "", paid), refused(core.ErrNoKey, 0))
	b.wantRuns(0)
}

func keyMissingOptional(b *grpcEnvironment) {
	p := b.serve(nil, grpclock.WithOptionalKey())
	for n := range 2 {
		p.wantFirst(p.call(b.Context(), paid), n+1)
	}
	p.wantRefused(p.send(b.Context(), "", paid), refused(core.ErrNoKey, 0))
	first := p.wantFirst(p.pay(), 3)
	p.wantReplay(first, p.pay())
}

func keyForms(b *grpcEnvironment) {
	p := b.serve(nil)
	for _, key := range []string{`"a`, `a"`, `"a" b`, `"a";`, `a;v=1`, "a,b", `"a", "b"`, `"a\b"`, "a b", `'a\'`} {
		p.wantRefused(p.send(b.Context(), key, paid), refused(core.ErrInvalidKey, 0))
	}
	for _, key := range []string{" ", "   ", `""`} {
		p.wantRefused(p.send(b.Context(), key, paid), refused(core.ErrNoKey, 0))
	}
	b.wantRuns(0)
}

func keyQuoted(b *grpcEnvironment) {
	p := b.serve(nil)
	first := p.wantFirst(p.send(b.Context(), "a", paid), 1)
	p.wantReplay(first, p.send(b.Context(), `"a"`, paid))
	p.wantReplay(first, p.send(b.Context(), ` "a" `, paid))
	first = p.wantFirst(p.send(b.Context(), `"a \"b\" \\"`, paid), 2)
	p.wantReplay(first, p.send(b.Context(), `"a \"b\" \\"`, paid))
}

// A key has at most 512 bytes.
func keyLong(b *grpcEnvironment) {
	p := b.serve(nil)
	first := p.wantFirst(p.send(b.Context(), strings.Repeat("k", 512), paid), 1)
	p.wantReplay(first, p.send(b.Context(), strings.Repeat("k", 512), paid))
	p.wantRefused(p.send(b.Context(), strings.Repeat("k", 513), paid), refused(core.ErrInvalidKey, 0))
}

func keyTwice(b *grpcEnvironment) {
	p := b.serve(nil)
	for _, second := range []string{theKey, "another", ""} {
		p.wantRefused(p.send(b.Context(), theKey, paid, "idempotency-key", second), refused(core.ErrInvalidKey, 0))
	}
	b.wantRuns(0)
}

// A service that accepts only keys of 36 characters checks that in its key function.
func keyOwnForm(b *grpcEnvironment) {
	key := func(c *grpclock.Call) (core.Key, error) {
		k, err := grpclock.IdempotencyKey()(c)
		if err == nil && len(k.Raw()) != 36 {
			return core.Key{}, core.ErrInvalidKey
		}
		return k, err
	}
	p := b.serveBehind(nil, grpclock.IdempotentUnaryServerInterceptor(b.locks, key))
	p.wantRefused(p.pay(), refused(core.ErrInvalidKey, 0))
	p.wantFirst(p.send(b.Context(), "8e03978e-40d5-43e8-bc93-6894a57f9324", paid), 1)
}

func keyOtherName(b *grpcEnvironment) {
	p := b.serveBehind(nil, grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.Metadata("x-key")))
	first := p.wantFirst(p.send(b.Context(), "1", paid, "x-key", theKey), 1)
	p.wantReplay(first, p.send(b.Context(), "2", paid, "X-Key", theKey))
}

// ofUser is the key function that the documentation recommends.
func ofUser() grpclock.KeyFunc {
	return core.Join(grpclock.Metadata("x-user"), grpclock.IdempotencyKey())
}

func scopeUser(b *grpcEnvironment) {
	p := b.serveBehind(nil, grpclock.IdempotentUnaryServerInterceptor(b.locks, ofUser()))
	first := p.wantFirst(p.send(b.Context(), theKey, paid, "x-user", "ada"), 1)
	p.wantFirst(p.send(b.Context(), theKey, paid, "x-user", "grace"), 2)
	p.wantReplay(first, p.send(b.Context(), theKey, paid, "x-user", "ada"))
}

func scopeMethod(b *grpcEnvironment) {
	p := b.serve(nil)
	first := p.wantFirst(p.pay(), 1)
	ctx := metadata.AppendToOutgoingContext(b.Context(), "idempotency-key", theKey)
	var header metadata.MD
	_, err := p.client.EmptyCall(ctx, &pb.Empty{}, grpc.Header(&header)) // the service does not have this method
	if got := answerOf("", err); got.status != int(codes.Unimplemented) || got.code != "" || header["idempotent-replayed"] != nil {
		b.Errorf("another method: %+v, header %v", got, header)
	}
	p.wantReplay(first, p.pay())
}

func scopeParts(b *grpcEnvironment) {
	p := b.serveBehind(nil, grpclock.IdempotentUnaryServerInterceptor(b.locks, ofUser()))
	p.wantFirst(p.send(b.Context(), "c", paid, "x-user", "a:b"), 1)
	p.wantFirst(p.send(b.Context(), "b:c", paid, "x-user", "a"), 2)
	p.wantFirst(p.send(b.Context(), "1:c", paid, "x-user", "a:b"), 3)
}

// An outer interceptor is called for each copy.
func scopeRight(b *grpcEnvironment) {
	allowed := true
	rights := func(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if !allowed {
			return nil, refusedBy(codes.PermissionDenied)
		}
		return next(ctx, m)
	}
	p := b.serveBehind(nil, rights, grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey()))
	first := p.wantFirst(p.pay(), 1)
	allowed = false
	if r := p.pay(); r.status != int(codes.PermissionDenied) || r.replayed() {
		b.Errorf("without the right: %+v", r)
	}
	allowed = true
	p.wantReplay(first, p.pay())
}
