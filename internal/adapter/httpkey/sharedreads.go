package httpkey

import (
	"fmt"
	"net/http"
	"reflect"

	"github.com/reqlock/reqlock/core"
)

// SharedReads makes the key function of that name of an HTTP adapter: GET and HEAD share the
// key, and all other methods lock it alone. method returns the method of a request.
func SharedReads[R any](method func(R) string, key core.KeyFunc[R]) core.KeyFunc[R] {
	return newSharedReads(method, key).read
}

// sharedReads is a key function. CheckSharedReads recognizes it by its method read.
type sharedReads[R any] struct{ key core.KeyFunc[R] }

func newSharedReads[R any](method func(R) string, key core.KeyFunc[R]) sharedReads[R] {
	reads := func(r R) bool { m := method(r); return m == http.MethodGet || m == http.MethodHead }
	return sharedReads[R]{core.SharedWhen(reads, key)}
}

// read reads the key of a request.
func (s sharedReads[R]) read(r R) (core.Key, error) {
	key, err := s.key(r)
	return key.NeedWait(), err
}

// CheckSharedReads returns an error if one of the key functions is SharedReads and the requests
// of the middleware do not wait for their lock. It does not recognize a SharedReads inside
// another key function: core.Enter refuses the requests of such a one.
func CheckSharedReads[R any](adapter string, l *core.Locker, keys []core.KeyFunc[R]) error {
	if l.MaxWait() > 0 {
		return nil
	}
	for _, key := range keys {
		if codeOf(key) == codeOf(sharedReads[R]{}.read) {
			return fmt.Errorf("reqlock: %s: SharedReads needs core.WithWait above 0: without it, reads can refuse a write for ever", adapter)
		}
	}
	return nil
}

// codeOf returns the address of the code of a key function. All closures and method values of
// one function have the same address.
func codeOf[R any](key core.KeyFunc[R]) uintptr { return reflect.ValueOf(key).Pointer() }
