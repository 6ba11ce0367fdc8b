package httpkey

import (
	"net/http"
	"reflect"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// SharedReads makes the key function of that name of an adapter: GET and HEAD share the key, and
// all other methods lock it alone. method returns the method of a request.
func SharedReads[R any](method func(R) string, key core.KeyFunc[R]) core.KeyFunc[R] {
	return needWait(core.SharedWhen(func(r R) bool {
		m := method(r)
		return m == http.MethodGet || m == http.MethodHead
	}, key))
}

// needWait returns a key function whose keys need a wait. CheckSharedReads recognizes it by the
// address of its code. So needWait must not be inlined, which would copy the code.
//
//go:noinline
func needWait[R any](key core.KeyFunc[R]) core.KeyFunc[R] {
	return func(r R) (core.RequestKey, error) {
		k, err := key(r)
		return k.NeedWait(), err
	}
}

// CheckSharedReads returns an error if one of the key functions is SharedReads and the requests
// of the middleware do not wait for their lock. It does not recognize a SharedReads inside
// another key function: core.Enter refuses the requests of such a one.
func CheckSharedReads[R any](n adapter.Name, l *core.Locker, keys []core.KeyFunc[R]) error {
	if l.MaxWait() > 0 {
		return nil
	}
	for _, key := range keys {
		if codeOf(key) == codeOf(needWait[R](nil)) {
			return n.Errorf("SharedReads needs core.WithWait above 0: without it, reads can refuse a write for ever")
		}
	}
	return nil
}

// codeOf returns the address of a function's code, which all its closures share.
func codeOf[R any](key core.KeyFunc[R]) uintptr { return reflect.ValueOf(key).Pointer() }
