package adapter

import (
	"slices"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// Convert returns a key for requests of the type R, which reads another request that R contains:
//
//	func Header(name string) Key { return Convert(nethttplock.Header(name), (*echo.Context).Request) }
//
// get must be safe for concurrent use.
func Convert[R, S any](key core.Key[S], get func(R) S) core.Key[R] {
	return keyOf(convert(nodeOf(key), get))
}

// convert is Convert for the inside of a key.
func convert[R, S any](node bridge.Node[S], get func(R) S) bridge.Node[R] {
	to := bridge.Node[R]{About: node.About}
	if node.Read != nil {
		to.Read = func(env bridge.Env, r R) (bridge.RequestKey, error) { return node.Read(env, get(r)) }
	}
	for _, one := range node.All {
		to.All = append(to.All, convert(one, get))
	}
	return to
}

// ConvertError returns a key with other errors, such as core.ErrBodyTooLarge for the error of a limit
// of the framework. convert gets each error of reading the key, and must be safe for concurrent use.
func ConvertError[R any](key core.Key[R], convert func(error) error) core.Key[R] {
	return keyOf(withRead(nodeOf(key), func(got bridge.RequestKey, err error) (bridge.RequestKey, error) {
		if err != nil {
			err = convert(err)
		}
		return got, err
	}))
}

// Cloned returns a key whose text shares no memory with the request, for a framework that uses the
// memory of a request again. Such an adapter clones the key of each lock. Of the key of an idempotent
// request, only a digest is kept.
func Cloned[R any](key core.Key[R]) core.Key[R] {
	return keyOf(withRead(nodeOf(key), func(got bridge.RequestKey, err error) (bridge.RequestKey, error) {
		got.Raw, got.Name = strings.Clone(got.Raw), strings.Clone(got.Name)
		return got, err
	}))
}

// withRead changes what the keys inside of a key have read.
func withRead[R any](node bridge.Node[R], change func(bridge.RequestKey, error) (bridge.RequestKey, error)) bridge.Node[R] {
	to := bridge.Node[R]{About: node.About}
	if node.Read != nil {
		to.Read = func(env bridge.Env, r R) (bridge.RequestKey, error) { return change(node.Read(env, r)) }
	}
	for _, one := range node.All {
		to.All = append(to.All, withRead(one, change))
	}
	return to
}

// Tag returns the key with a note of the adapter, such as the type of the message that the key
// reads. Tags finds it, also in a key that is made of this one. Tag and Tags panic for the zero Key.
func Tag[R any](key core.Key[R], tag any) core.Key[R] {
	return keyOf(tagged(nodeOf(key), tag))
}

// tagged is Tag for the inside of a key.
func tagged[R any](node bridge.Node[R], tag any) bridge.Node[R] {
	about := *node.About
	about.Tags = append(slices.Clip(about.Tags), tag)
	node.About, node.All = &about, slices.Clone(node.All)
	for i, one := range node.All { // a method of several keys makes a new All of them
		node.All[i] = tagged(one, tag)
	}
	return node
}

// Tags returns the tags of a key, and of all keys of which it is made. It reads no request. The
// caller must not change the result.
func Tags[R any](key core.Key[R]) []any { return nodeOf(key).About.Tags }

// nodeOf returns the inside of a key.
func nodeOf[R any](key core.Key[R]) bridge.Node[R] {
	return bridge.NodeOf(key).(bridge.Node[R]) //nolint:forcetypeassert // see bridge
}

// keyOf returns the key with an inside.
func keyOf[R any](node bridge.Node[R]) core.Key[R] {
	return bridge.KeyOf(core.Key[R]{}, node).(core.Key[R]) //nolint:forcetypeassert // see bridge
}
