package core

import "errors"

// A KeyFunc reads the lock key from a request. The functions of this package and of the
// adapters return one. It must be safe for concurrent use and return the same key for the same
// request.
//
// A function of your own that returns a string is accepted wherever a KeyFunc is, except in
// these places, where Func converts it: beside other key functions in one call of Join, First,
// Enter or Also, and where the type KeyFunc is written out, as in a map, a slice or a
// configuration.
//
// An empty key counts as ErrNoKey: the request is refused, and does not share a lock with
// other requests without a key. If the error is ErrSkip, the request runs without a lock.
// Any other error refuses the request. If that error has a method StatusCode() int, the
// method returns the status of the answer.
type KeyFunc[R any] func(R) (RequestKey, error)

// Read returns the key of a request. It is for an adapter of your own that calls BeginKey, and
// for a key function that calls another one. An empty key is ErrNoKey. The error names the key
// function. RefusalOf returns an outcome for every error except ErrSkip.
func (key KeyFunc[R]) Read(r R) (RequestKey, error) { return readKey(key, r) }

// readKey is KeyFunc.Read for each form of key function.
func readKey[R any, K string | RequestKey](key func(R) (K, error), r R) (RequestKey, error) {
	k, err := callKey(key, r)
	switch {
	case err == nil:
		return k, nil
	case errors.Is(err, ErrSkip):
		return RequestKey{}, err // without the name of the function, which costs an allocation
	default:
		return RequestKey{}, KeyError(withName(err, functionOf(key)))
	}
}

// callKey calls the key function. It returns ErrNoKey for an empty key.
func callKey[R any, K string | RequestKey](key func(R) (K, error), r R) (RequestKey, error) {
	read, err := key(r)
	if err != nil {
		return RequestKey{}, err
	}
	k := keyOf(read)
	if k.raw == "" {
		return RequestKey{}, ErrNoKey
	}
	return k, nil
}

// keyOf converts the result of a key function.
func keyOf[K string | RequestKey](k K) RequestKey {
	switch k := any(k).(type) {
	case string:
		return RequestKey{raw: k}
	case RequestKey:
		return k
	}
	return RequestKey{} // impossible: K is one of the two
}

// Func makes a KeyFunc from a function of your own. It is needed where a function that returns
// a string stands beside other key functions, or where the type KeyFunc is written out:
//
//	core.First(nethttplock.Header("X-Account"), core.Func(ofSession))
//
// Its errors have the name of the function, unless a function around it names them: see Describe.
// A KeyFunc is returned as it is.
func Func[R any, K string | RequestKey](key func(R) (K, error)) KeyFunc[R] {
	must(key != nil, "Func needs a function")
	if own, ok := any(key).(func(R) (RequestKey, error)); ok {
		return own
	}
	name := functionOf(key)
	return func(r R) (RequestKey, error) {
		k, err := callKey(key, r)
		if err != nil {
			return RequestKey{}, withName(err, name)
		}
		return k, nil
	}
}

// Of makes a KeyFunc from a function that cannot fail, such as a getter. An empty string is
// ErrNoKey.
func Of[R any](get func(R) string) KeyFunc[R] {
	must(get != nil, "Of needs a function")
	return Describe("Of("+functionOf(get)+")", "", func(r R) (string, error) { return get(r), nil })
}

// KeyError converts an error of a key function, or another error of reading a request, to an
// error for which RefusalOf returns an outcome. It returns nil and ErrSkip unchanged.
func KeyError(err error) error {
	if err == nil {
		return nil
	}
	for _, kind := range [...]error{ErrSkip, ErrNoKey, ErrInvalidKey, ErrBodyTooLarge} {
		if errors.Is(err, kind) {
			return err
		}
	}
	return &keyError{err}
}

// funcsOf makes a KeyFunc from each of the functions. It panics, with the name of the caller,
// if there is none, or if one is nil.
func funcsOf[R any, F ~func(R) (K, error), K string | RequestKey](caller string, keys []F) []KeyFunc[R] {
	must(len(keys) > 0, caller+" needs a key function")
	funcs := make([]KeyFunc[R], len(keys))
	for i, key := range keys {
		must(key != nil, caller+" got a nil key function")
		funcs[i] = Func((func(R) (K, error))(key))
	}
	return funcs
}

// must panics with the message unless ok is true. It is for mistakes of the programmer.
func must(ok bool, message string) {
	if !ok {
		panic("reqlock: " + message)
	}
}
