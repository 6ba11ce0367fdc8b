package inspect

import (
	"context"
	"errors"

	"github.com/reqlock/reqlock/core"
)

// Resolve ends the unknown outcome of an idempotent request, as core.Locker.Resolve does. The record is
// that of Record or Records, which the operator has looked at. The errors and the event are those of core.
func (i *Inspector) Resolve(ctx context.Context, record Record, resolution core.Resolution) error {
	key, ok := record.Key.EndpointKey()
	if !ok {
		return errors.New("reqlock: Resolve: Redis has only a digest of the key of the Record: call core.Locker.Resolve with the key itself")
	}
	var resolved core.Event
	l, err := i.locker(core.WithObserver(func(e core.Event) {
		if e.Change != nil {
			resolved = e
		}
	}))
	if err != nil {
		return err
	}
	defer func() { _ = l.Close(ctx) }()
	err = l.Resolve(ctx, key, resolution, record.Attempt)
	if resolved.Change != nil {
		resolved.Process = "" // that of the Locker above, which is no process of the service
		i.observe(resolved)
	}
	return err
}

// locker returns a Locker with an observer, which has what core does for an operator. The caller closes it.
func (i *Inspector) locker(observer core.Option) (*core.Locker, error) {
	return core.New(i.rdb, core.WithPrefix(i.prefix), core.WithRetention(i.retention), core.WithLogger(nil), observer)
}
