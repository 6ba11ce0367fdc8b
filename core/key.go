package core

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A KeyFunc reads the lock key from a request. It must be safe for concurrent use and return
// the same key for the same request.
//
// An empty key counts as ErrNoKey: the request is refused, and does not share a lock with
// other requests without a key. If the error is ErrSkip, the request runs without a lock.
// Any other error refuses the request. If that error has a method StatusCode() int, the
// method returns the status of the answer.
type KeyFunc[R any] func(R) (string, error)

// read calls the key function. It returns ErrNoKey for an empty key.
func (key KeyFunc[R]) read(r R) (string, error) {
	k, err := key(r)
	if err == nil && k == "" {
		err = ErrNoKey
	}
	return k, err
}

// Read returns the key of a request. It is for an adapter of your own that calls Begin. An
// empty key is ErrNoKey. The error names the key function. OutcomeOf returns an outcome for
// every error except ErrSkip.
func (key KeyFunc[R]) Read(r R) (string, error) {
	k, err := key.read(r)
	if err != nil {
		return "", KeyError(described(err, functionOf(key), ""))
	}
	return k, nil
}

// KeyError converts an error of a key function, or another error of reading a request, to an
// error for which OutcomeOf returns an outcome. It returns nil and ErrSkip unchanged.
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

// EndpointKey returns the key that the Idempotent middlewares give to Begin. Outcome and
// Resolve take it. It is for an adapter of your own: the functions EndpointKey of the adapters
// make the key from what a client has sent. For HTTP, the arguments are the method, the pattern
// of the route as the framework writes it, and the key that the middleware's key function
// returns. For gRPC they are "", the full method, and the key.
//
// The result is a digest. So the client's key cannot be read by accident in Redis, and the
// same key on two endpoints makes two keys.
func EndpointKey(method, route, key string) string {
	digest := sha256.New()
	for _, part := range [...]string{"1", method, route, key} {
		fmt.Fprintf(digest, "%d:%s", len(part), part)
	}
	return base64.RawURLEncoding.EncodeToString(digest.Sum(nil))
}

// Of makes a KeyFunc from a function that cannot fail, such as a getter. An empty string is
// ErrNoKey.
func Of[R any](get func(R) string) KeyFunc[R] {
	must(get != nil, "Of needs a function")
	return Describe("Of("+functionOf(get)+")", "", func(r R) (string, error) { return get(r), nil })
}

// Join makes one key from several parts. The key is unique for any parts: other parts, or
// parts that are split at another place, make another key. If a part has an error, ErrSkip
// included, Join returns that error. An empty part is ErrNoKey.
//
// Each part is written as its length in bytes, a colon and the part: "a" and "bc" make
// "1:a2:bc".
func Join[R any](keys ...KeyFunc[R]) KeyFunc[R] {
	mustAll(keys, "Join")
	return func(r R) (string, error) {
		var joined strings.Builder
		for _, key := range keys {
			k, err := key.read(r)
			if err != nil {
				return "", err
			}
			joined.WriteString(strconv.Itoa(len(k)))
			joined.WriteByte(':')
			joined.WriteString(k)
		}
		return joined.String(), nil
	}
}

// First uses the first key function that returns a key. It calls the next function only
// after ErrNoKey, so it does not ignore a malformed key.
func First[R any](keys ...KeyFunc[R]) KeyFunc[R] {
	mustAll(keys, "First")
	return func(r R) (string, error) {
		var calls, parts []string
		for _, key := range keys {
			k, err := key.read(r)
			if err == nil || !errors.Is(err, ErrNoKey) {
				return k, err
			}
			var failed *keyPartError
			if !errors.As(err, &failed) {
				failed = &keyPartError{call: functionOf(key)}
			}
			calls = append(calls, failed.call)
			if failed.part != "" {
				parts = append(parts, failed.part)
			}
		}
		return "", &keyPartError{"First(" + strings.Join(calls, ", ") + ")", strings.Join(parts, " or "), ErrNoKey}
	}
}

// When locks only the requests for which the condition is true. All other requests run
// without a lock.
func When[R any](condition func(R) bool, key KeyFunc[R]) KeyFunc[R] {
	must(condition != nil, "When needs a condition")
	must(key != nil, "When needs a key function")
	return func(r R) (string, error) {
		if !condition(r) {
			return "", ErrSkip
		}
		return key.read(r)
	}
}

// Named puts a name before a key, to separate two kinds of key: with Named("account", ...)
// and Named("user", ...), account 42 and user 42 do not exclude each other. Routes with the
// same name and key exclude each other, whatever their paths are.
//
// The key is written as name, colon, key: "account:42". So Do and LockAll lock the same
// account by that key. The two accounts of a transfer need the same name, because an account
// is the source of one transfer and the target of another. A name consists of letters, digits,
// "-", "_", "." and "/", and does not begin with a digit. Any other name panics. The name "i"
// also panics, because it marks idempotent requests. So the key is unique for any name and
// key, and differs from all keys of Join.
func Named[R any](name string, key KeyFunc[R]) KeyFunc[R] {
	must(name != strings.TrimSuffix(attemptMark, ":"), "Named cannot use the name of idempotent requests")
	must(isName(name), "Named needs a name of letters, digits, '-', '_', '.' and '/' that does not begin with a digit")
	must(key != nil, "Named needs a key function")
	key = Describe("Named("+strconv.Quote(name)+")", "", key)
	return func(r R) (string, error) {
		k, err := key.read(r)
		if err != nil {
			return "", err
		}
		return name + ":" + k, nil
	}
}

// Hashed replaces the key by its SHA-256 (base64url, 43 characters). Long keys become short,
// and keys cannot be read by accident in Redis. A reader who can guess keys can still find
// them: to prevent that, use Keyed.
func Hashed[R any](key KeyFunc[R]) KeyFunc[R] {
	must(key != nil, "Hashed needs a key function")
	return func(r R) (string, error) {
		k, err := key.read(r)
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256([]byte(k))
		return base64.RawURLEncoding.EncodeToString(sum[:]), nil
	}
}

// Keyed replaces the key by its HMAC-SHA-256 under a secret (RFC 2104, base64url, 43
// characters), so that personal data in keys does not get into Redis. Processes exclude each
// other only if they have the same secret. An empty secret panics.
func Keyed[R any](secret []byte, key KeyFunc[R]) KeyFunc[R] {
	must(len(secret) > 0, "Keyed needs a secret")
	must(key != nil, "Keyed needs a key function")
	secret = append([]byte(nil), secret...)
	return func(r R) (string, error) {
		k, err := key.read(r)
		if err != nil {
			return "", err
		}
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(k))
		return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
	}
}

// isName reports whether Named accepts a name.
func isName(name string) bool {
	for i, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		digit := '0' <= c && c <= '9' && i > 0
		if !letter && !digit && !strings.ContainsRune("-_./", rune(c)) {
			return false
		}
	}
	return name != ""
}

// must panics with the message unless ok is true. It is for mistakes of the programmer.
func must(ok bool, message string) {
	if !ok {
		panic("reqlock: " + message)
	}
}

// mustAll panics if there is no key function, or if one is nil.
func mustAll[R any](keys []KeyFunc[R], name string) {
	must(len(keys) > 0, name+" needs a key function")
	for _, key := range keys {
		must(key != nil, name+" got a nil key function")
	}
}
