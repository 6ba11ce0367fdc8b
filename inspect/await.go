package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/store"
)

// An actor changes leases as an operator says: a redisstore.Store.
type actor interface {
	Revoke(r redisstore.RevokeRequest, done func(revoked int, err error))
	Free(r redisstore.FreeRequest, done func(store.ReleaseResult, error))
}

// await sends a command of an operator, and waits for its reply.
func await[T any](ctx context.Context, i *Inspector, do func(s actor, done func(T, error))) (result T, err error) {
	if err := ctx.Err(); err != nil {
		return result, err
	}
	s, err := redisstore.New(i.rdb, i.prefix, redisstore.NewProcess(), redisstore.Replicas{})
	if err != nil {
		return result, fmt.Errorf("reqlock: inspect: %w", err)
	}
	defer func() { _ = s.Close(ctx) }()
	type reply struct {
		result T
		err    error
	}
	replies := make(chan reply, 1)
	do(s, func(result T, err error) { replies <- reply{result, err} })
	select {
	case r := <-replies:
		return r.result, asActionError(r.err)
	case <-ctx.Done():
		return result, fmt.Errorf("%w: %w", errUnsure, ctx.Err())
	}
}

// errUnsure says that it is unknown whether a lease has ended.
var errUnsure = fmt.Errorf("%w: the lease may have ended: call Lock", core.ErrUnavailable)

// asActionError returns the error of an action.
func asActionError(err error) error {
	if err == nil {
		return nil
	}
	var fault *store.Fault
	if errors.As(err, &fault) && fault.Unknown {
		return fmt.Errorf("%w: %w", errUnsure, err)
	}
	return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
}
