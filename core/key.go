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

// A KeyFunc reads the lock key from a request. It must be safe for concurrent
// use and give the same key for the same request.
//
// An empty key is ErrNoKey: a request without a key is refused, it does not
// share a lock with the others that have none. ErrSkip runs the request
// without a lock, on purpose. Any other error refuses the request; if it has a
// method StatusCode() int, that status is the answer.
type KeyFunc[R any] func(R) (string, error)

// read calls the key function and settles the empty key.
func (key KeyFunc[R]) read(r R) (string, error) {
	k, err := key(r)
	if err == nil && k == "" {
		err = ErrNoKey
	}
	return k, err
}

// Read returns the key of a request, for an adapter of your own that calls Begin.
// An empty key is ErrNoKey, and any error is one that OutcomeOf knows, but for
// ErrSkip.
func (key KeyFunc[R]) Read(r R) (string, error) {
	k, err := key.read(r)
	return k, KeyError(err)
}

// KeyError returns an error of a key function, or of what else is read from a
// request before it runs, as one that OutcomeOf knows. nil and ErrSkip stay.
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

// EndpointKey returns the key under which the Idempotent middlewares begin the
// attempts of an endpoint, which is what Resolve needs: for HTTP the method, the
// pattern of the route as the framework writes it, and the key that the
// middleware's key function returns; for gRPC "", the full method and the key.
//
// It is a digest: what the client has chosen is not read by chance in Redis, and
// the same key on two endpoints makes two.
func EndpointKey(method, route, key string) string {
	digest := sha256.New()
	for _, part := range [...]string{"1", method, route, key} {
		fmt.Fprintf(digest, "%d:%s", len(part), part)
	}
	return base64.RawURLEncoding.EncodeToString(digest.Sum(nil))
}

// Of makes a KeyFunc of a function that cannot fail, such as a getter. An
// empty string is ErrNoKey.
func Of[R any](get func(R) string) KeyFunc[R] {
	must(get != nil, "Of needs a function")
	return func(r R) (string, error) { return get(r), nil }
}

// Join makes one key of several parts. It is injective: other parts, or parts
// cut at another place, never make the same key. The first part that has an
// error ends it with that error, ErrSkip included; an empty part is ErrNoKey.
//
// Each part is written as its length in bytes, a colon and the part: "a" and
// "bc" make "1:a2:bc".
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

// First uses the first of several key functions that finds a key. It goes on
// to the next one only after ErrNoKey: a malformed key is not passed over.
func First[R any](keys ...KeyFunc[R]) KeyFunc[R] {
	mustAll(keys, "First")
	return func(r R) (string, error) {
		for _, key := range keys {
			k, err := key.read(r)
			if err == nil || !errors.Is(err, ErrNoKey) {
				return k, err
			}
		}
		return "", ErrNoKey
	}
}

// When locks only the requests for which the condition holds; the others run
// without a lock, on purpose.
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

// Named puts a name before a key, so that two kinds of key keep apart: account
// 42 and user 42 do not exclude each other when their routes use
// Named("account", ...) and Named("user", ...). Routes that use the same name
// and key do exclude each other, whatever their paths are.
//
// The key is written as name, colon, key: "account:42". A name is made of
// letters, digits, "-", "_", "." and "/", and does not begin with a digit;
// another one panics, and so does "i", which stands for idempotent requests. So Named is injective, and never meets a key of Join.
func Named[R any](name string, key KeyFunc[R]) KeyFunc[R] {
	must(name != strings.TrimSuffix(attemptMark, ":"), "Named cannot use the name of idempotent requests")
	must(isName(name), "Named needs a name of letters, digits, '-', '_', '.' and '/' that does not begin with a digit")
	must(key != nil, "Named needs a key function")
	return func(r R) (string, error) {
		k, err := key.read(r)
		if err != nil {
			return "", err
		}
		return name + ":" + k, nil
	}
}

// Hashed replaces the key by its SHA-256 (base64url, 43 characters), so that
// long keys become short, and keys are not read by chance in Redis. It hides
// nothing from somebody who can guess keys; for that use Keyed.
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

// Keyed replaces the key by its HMAC-SHA-256 under a secret (RFC 2104,
// base64url, 43 characters), so that personal data in keys stays out of Redis.
// All processes that are to exclude each other need the same secret. An empty
// secret panics.
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

// isName reports whether a name can stand before a colon and a key.
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

// must panics with the message: what a programmer did wrong at registration.
func must(ok bool, message string) {
	if !ok {
		panic("reqlock: " + message)
	}
}

// mustAll panics unless there is at least one key function and none is nil.
func mustAll[R any](keys []KeyFunc[R], name string) {
	must(len(keys) > 0, name+" needs a key function")
	for _, key := range keys {
		must(key != nil, name+" got a nil key function")
	}
}
