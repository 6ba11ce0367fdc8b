package core

import (
	"errors"

	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/kind"
)

// A Key says where the lock key of a request comes from, how many requests may hold it, and which
// requests need it. R is the request of a framework, such as *http.Request. The adapters have
// functions that return Keys, and KeyOf makes one from a function of your own:
//
//	nethttplock.PathValue("id").Named("account").Permits(3)
//
// A Key is a value: methods such as Named return a changed copy. The zero Key reads nothing: these
// methods panic for it, and so does a middleware. A Key is safe for concurrent use, and must return
// the same key for the same request.
//
// A request without a key (ErrNoKey) is refused. It never runs without a lock, and shares no lock
// with other requests without a key. Exception: When, Switch and ErrSkip say that a request needs
// no lock.
type Key[R any] struct{ node bridge.Node[R] }

// KeyOf makes a Key from a function of your own. It must be safe for concurrent use. An empty
// string is ErrNoKey, and a mistake of the program: the observers of a middleware get one Warned
// event. Return ErrNoKey where the client has to send the value. If the error is ErrSkip, the request
// runs without a lock. Any other error refuses the request; if that error has a method StatusCode()
// int, the method returns the status of the answer. If that is 500 or more, there is one Warned event,
// too. The errors name the function. A nil function panics.
func KeyOf[R any](read func(R) (string, error)) Key[R] {
	must(read != nil, "KeyOf needs a function")
	name := functionOf(read)
	return keyOf(bridge.About{Text: "KeyOf(" + name + ")", Call: name}, func(_ bridge.Env, r R) (lockKey, error) {
		key, err := read(r)
		return lockKey{Raw: key}, err
	})
}

// Getter makes a Key from a function that cannot fail, such as a method of the request. An empty
// string is that of KeyOf. A nil function panics.
func Getter[R any](get func(R) string) Key[R] {
	must(get != nil, "Getter needs a function")
	return KeyOf(func(r R) (string, error) { return get(r), nil }).Describe("Getter("+functionOf(get)+")", "")
}

// keyOf makes a Key that reads one key. An empty key is the ErrNoKey of a mistake of the program.
func keyOf[R any](about bridge.About, read func(bridge.Env, R) (lockKey, error)) Key[R] {
	return Key[R]{bridge.Node[R]{About: &about, Read: func(env bridge.Env, r R) (lockKey, error) {
		key, err := read(env, r)
		if err == nil && key.Raw == "" {
			err = kind.ErrEmpty
		}
		return key, err
	}}}
}

// Describe names a key in its errors. call is how the program writes it, such as `session()`. part
// says what a client has to mend, such as `the header "X-Account"`: Refusal.Part has it. Neither
// may contain anything from the request. part is "" where a client cannot mend it. The last call
// counts. The keys of the adapters are described. Of a key that is combined from others, such as a
// Join, errors name the part that failed.
func (k Key[R]) Describe(call, part string) Key[R] {
	return k.each("Describe", func(node bridge.Node[R]) bridge.Node[R] {
		about := *node.About
		about.Text, about.Call, about.Part = call, call, part
		node.About = &about
		return node
	})
}

// Read returns the key of one request, for tests and for code outside a middleware. An empty key is
// ErrNoKey. The error names the key, and RefusalOf returns a Refusal for it, except for ErrSkip.
// Several keys (All) and the zero Key are other errors. At most 1 MiB of a body is read, whatever
// WithMaxBody says.
func (k Key[R]) Read(r R) (RequestKey, error) {
	switch {
	case k.node.About == nil:
		return RequestKey{}, errors.New("reqlock: Read: the Key is the zero Key")
	case k.node.All != nil:
		return RequestKey{}, errors.New("reqlock: Read: the Key is several keys of All")
	}
	key, err := readNode(k.node, bridge.Env{MaxBody: bridge.DefaultMaxBody}, r)
	return RequestKey{key}, asKeyError(err)
}

// IsZero reports whether the Key is the zero Key, which no middleware accepts. It is for a table of
// routes, some of which have no key.
func (k Key[R]) IsZero() bool { return k.node.About == nil }

// String returns the key as a program writes it: `PathValue("id").Named("account")`.
func (k Key[R]) String() string {
	if k.node.About == nil {
		return "the zero Key"
	}
	return k.node.About.Text
}

// readNode reads the key of one request. Its errors are described, unless they are ignored.
func readNode[R any](node bridge.Node[R], env bridge.Env, r R) (lockKey, error) {
	key, err := node.Read(env, r)
	switch {
	case err == nil:
		return key, nil
	case env.Drop != nil && *env.Drop:
		return lockKey{}, err
	}
	return lockKey{}, described(err, node.About)
}

// each changes each of the keys: the one key, or those of All. It panics for the zero Key.
func (k Key[R]) each(method string, change func(bridge.Node[R]) bridge.Node[R]) Key[R] {
	must(k.node.About != nil, method+" of the zero Key")
	if k.node.All == nil {
		return Key[R]{change(k.node)}
	}
	keys := make([]Key[R], len(k.node.All))
	for i, node := range k.node.All {
		keys[i] = Key[R]{change(node)}
	}
	return All(keys...)
}

// with changes what the key has read, by a method with these arguments. The description stays.
func (k Key[R]) with(method, arguments string, change func(r R, key lockKey) lockKey) Key[R] {
	return k.each(method, func(node bridge.Node[R]) bridge.Node[R] {
		about, read := *node.About, node.Read
		about.Text += "." + method + "(" + arguments + ")"
		return bridge.Node[R]{About: &about, Read: func(env bridge.Env, r R) (lockKey, error) {
			key, err := read(env, r)
			if err != nil {
				return lockKey{}, err
			}
			return change(r, key), nil
		}}
	})
}
