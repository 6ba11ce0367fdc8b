package core

import (
	"context"

	"github.com/reqlock/reqlock/internal/bridge"
)

// What only adapters need is set here: see package bridge.
func init() { //nolint:gochecknoinits // see package bridge
	bridge.NewAnswer = func(encoded []byte) any { return Answer{string(encoded)} }
	bridge.NodeOf = func(key any) any { return key.(insideKey).inside() }
	bridge.KeyOf = func(like, node any) any { return like.(insideKey).of(node) }
	bridge.AboutOf = func(key any) *bridge.About { return key.(insideKey).about() }
	bridge.Bind = func(l, key any) any { return key.(insideKey).bind(l.(*Locker)) }
	bridge.DescribeError = func(err error, call, part string) error {
		return KeyError(described(err, &bridge.About{Call: call, Part: part}))
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
		Read: func(r R) bridge.Reading {
			keys, err := readKeys(l, k.node, nil, r)
			return bridge.Reading{Keys: keys, Err: err}
		},
		Enter: func(ctx context.Context, read bridge.Reading) (context.Context, func(), error) {
			return l.enterRead(ctx, read.Keys, read.Err)
		},
		ReadOne: func(ctx context.Context, r R) (lockKey, error) {
			key, err := readNode(k.node, l.env(), r)
			if err != nil {
				err = KeyError(err)
				l.observeUnread(ctx, err, true)
			}
			return key, err
		},
		Begin: func(ctx context.Context, key lockKey, method, route string, fingerprint []byte) (any, error) {
			key.Raw = EndpointKey(method, route, key.Raw)
			attempt, err := l.begin(ctx, key, fingerprint)
			return attempt, err
		},
		Refuse: func(ctx context.Context, err error) { l.observeUnread(ctx, err, true) },
	}
}
