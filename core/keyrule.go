package core

import (
	"crypto/fips140"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// Join makes one key from several parts. The key is unique for any parts: other parts, or
// parts that are split at another place, make another key. If a part has an error, ErrSkip
// included, Join returns that error. An empty part is ErrNoKey.
//
// Each part is written as its length in bytes, a colon and the part: "a" and "bc" make
// "1:a2:bc".
//
// The key has no name, even if its parts have one: Named around Join gives it one. Permits and
// Shared belong around Join, too: a part with one of them refuses the request, because the
// joined key is another key than the part. Func converts a function of your own that stands
// beside other key functions.
func Join[R any, F ~func(R) (K, error), K string | RequestKey](keys ...F) KeyFunc[R] {
	parts := funcsOf[R]("Join", keys)
	return func(r R) (RequestKey, error) {
		var joined strings.Builder
		for _, part := range parts {
			k, err := callKey(part, r)
			if err == nil && k.hasLimit {
				err = errSharedPart
			}
			if err != nil {
				return RequestKey{}, err
			}
			joined.WriteString(strconv.Itoa(len(k.raw)))
			joined.WriteByte(':')
			joined.WriteString(k.raw)
		}
		return RequestKey{raw: joined.String()}, nil
	}
}

// errSharedPart refuses a part of Join that has a limit.
var errSharedPart = errors.New("Join: a part has Permits or Shared: write them around Join")

// First uses the first key function that returns a key. It calls the next function only
// after ErrNoKey, so it does not ignore a malformed key. Func converts a function of your own
// that stands beside other key functions.
func First[R any, F ~func(R) (K, error), K string | RequestKey](keys ...F) KeyFunc[R] {
	choices := funcsOf[R]("First", keys)
	return func(r R) (RequestKey, error) {
		var calls, parts []string
		for _, key := range choices {
			k, err := callKey(key, r)
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
		call, part := "First("+strings.Join(calls, ", ")+")", strings.Join(parts, " or ")
		return RequestKey{}, &keyPartError{call: call, part: part, err: ErrNoKey}
	}
}

// When locks only the requests for which the condition is true. All other requests run
// without a lock.
func When[R any, K string | RequestKey](condition func(R) bool, key func(R) (K, error)) KeyFunc[R] {
	must(condition != nil, "When needs a condition")
	must(key != nil, "When needs a key function")
	chosen := Func(key)
	return func(r R) (RequestKey, error) {
		if !condition(r) {
			return RequestKey{}, ErrSkip
		}
		return callKey(chosen, r)
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
//
// The events of the lock have the name, too: see Event.Name. Of several Named around one key
// it is the name of the outermost one. First, When, Describe, Hashed and Keyed keep it.
func Named[R any, K string | RequestKey](name string, key func(R) (K, error)) KeyFunc[R] {
	if err := checkName(name); err != nil {
		panic(err.Error())
	}
	must(key != nil, "Named needs a key function")
	whole := Describe("Named("+strconv.Quote(name)+")", "", key)
	return func(r R) (RequestKey, error) {
		k, err := whole(r)
		if err != nil {
			return RequestKey{}, err
		}
		k.raw, k.name = name+":"+k.raw, name
		return k, nil
	}
}

// Hashed replaces the key by its SHA-256 (base64url, 43 characters). Long keys become short,
// and keys cannot be read by accident in Redis. A reader who can guess keys can still find
// them: to prevent that, use Keyed.
func Hashed[R any, K string | RequestKey](key func(R) (K, error)) KeyFunc[R] {
	must(key != nil, "Hashed needs a key function")
	plain := Func(key)
	return func(r R) (RequestKey, error) {
		k, err := callKey(plain, r)
		if err != nil {
			return RequestKey{}, err
		}
		sum := sha256.Sum256([]byte(k.raw))
		k.raw = base64.RawURLEncoding.EncodeToString(sum[:])
		return k, nil
	}
}

// minFIPSSecret is the length of the shortest secret, in bytes, with which crypto/hmac does not
// panic under GODEBUG=fips140=only: 112 bits.
const minFIPSSecret = 14

// Keyed replaces the key by its HMAC-SHA-256 under a secret (RFC 2104, base64url, 43
// characters), so that personal data in keys does not get into Redis. Processes exclude each
// other only if they have the same secret. An empty secret panics, and so does one of less than
// 14 bytes under GODEBUG=fips140=only, which forbids it.
func Keyed[R any, K string | RequestKey](secret []byte, key func(R) (K, error)) KeyFunc[R] {
	must(len(secret) > 0, "Keyed needs a secret")
	must(!fips140.Enforced() || len(secret) >= minFIPSSecret, "Keyed needs a secret of at least 14 bytes under GODEBUG=fips140=only")
	must(key != nil, "Keyed needs a key function")
	plain := Func(key)
	secret = append([]byte(nil), secret...)
	return func(r R) (RequestKey, error) {
		k, err := callKey(plain, r)
		if err != nil {
			return RequestKey{}, err
		}
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(k.raw))
		k.raw = base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
		return k, nil
	}
}

// isName reports whether Named and WithName accept a name.
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
