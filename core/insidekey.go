package core

import (
	"cmp"
	"context"
	"errors"

	"github.com/reqlock/reqlock/internal/bridge"
)

// What only adapters need is set here: see package bridge.
func init() { //nolint:gochecknoinits // see package bridge
	bridge.NewAnswer = func(encoded []byte) any { return Answer{string(encoded)} }
	bridge.NodeOf = func(key any) any { return key.(insideKey).inside() }
	bridge.KeyOf = func(like, node any) any { return like.(insideKey).of(node) }
	bridge.AboutOf = func(key any) *bridge.About { return key.(insideKey).about() }
	bridge.CheckLimits = func(l, key any) error { return l.(*Locker).settings.checkLimits(key.(insideKey).about().Limits) }
	bridge.Bind = func(l, key any, idempotent bool) any {
		locks, about := l.(*Locker), key.(insideKey).about()
		locks.observeRegistered(about.Names, idempotent)
		if !idempotent {
			locks.settings.requests.Key = about.Text
		}
		return key.(insideKey).bind(locks)
	}
	bridge.IsTwice = func(held bridge.Held, l any, target string) bool {
		locks, _ := held.(*locksOfRequest)
		return locks != nil && locks.isTwice(l.(*Locker), target)
	}
	bridge.DescribeError = func(err error, call, part string) error {
		return asKeyError(described(err, &bridge.About{Call: call, Part: part}))
	}
	bridge.DescriptionOf = func(err error) (call, part string) {
		var failed *keyPartError
		if errors.As(err, &failed) {
			return failed.call, failed.part
		}
		return "", ""
	}
}

// An insideKey is a Key[R] for any R.
type insideKey interface {
	inside() any // a bridge.Node[R]
	of(node any) any
	about() *bridge.About
	bind(l *Locker) any
}

func (k Key[R]) inside() any          { return k.node }
func (Key[R]) of(node any) any        { return Key[R]{node.(bridge.Node[R])} } //nolint:forcetypeassert // of package adapter
func (k Key[R]) about() *bridge.About { return k.node.About }

// bind returns the bridge.Bound of the key.
func (k Key[R]) bind(l *Locker) any {
	return &bridge.Bound[R]{
		Enter: func(ctx context.Context, r R, drop *bool) (context.Context, bridge.Held, error) {
			return enterUnless(ctx, l, r, k, drop)
		},
		ReadOne: func(ctx context.Context, r R, name string) (lockKey, error) {
			key, err := readNode(k.node, l.env(), r)
			if errors.Is(err, ErrSkip) {
				return key, err
			}
			if err != nil {
				key.Name = nameOfUnread(k.node.About)
			}
			key.Name = cmp.Or(key.Name, name)
			err = l.ofRequest(asKeyError(err), true)
			l.observeUnread(ctx, key, true, err)
			return key, err
		},
		Begin: func(ctx context.Context, key lockKey, method, route string, fingerprint []byte) (any, error) {
			key.Raw = endpointKey(method, route, key.Raw)
			attempt, err := l.begin(ctx, key, fingerprint)
			return attempt, l.ofRequest(err, true)
		},
		Refuse: func(ctx context.Context, key lockKey, err error) error {
			err = l.ofRequest(err, true)
			l.observeUnread(ctx, key, true, err)
			return err
		},
		Own: func(err error) error { return l.ofRequest(err, true) },
	}
}
