package inspect

import (
	"context"
	"errors"

	"github.com/reqlock/reqlock/core"
)

// Resolve ends the unknown outcome of an idempotent request, as core.Locker.Resolve does. The record is
// that of Record or Records, which the operator has looked at. The errors are those of core.
func (i *Inspector) Resolve(ctx context.Context, record Record, resolution core.Resolution) error {
	key, ok := record.Key.EndpointKey()
	if !ok {
		return errors.New("reqlock: Resolve: Redis has only a digest of the key of the Record: call core.Locker.Resolve with the key itself")
	}
	l, err := i.locker()
	if err != nil {
		return err
	}
	defer func() { _ = l.Close(ctx) }()
	return l.Resolve(ctx, key, resolution, record.Attempt)
}

// locker returns a Locker, which has what core does for an operator. The caller closes it.
func (i *Inspector) locker() (*core.Locker, error) {
	return core.New(i.rdb, core.WithPrefix(i.prefix), core.WithRetention(i.retention), core.WithLogger(nil))
}
