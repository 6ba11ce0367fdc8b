package core

import (
	"crypto/fips140"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/reqlock/reqlock/internal/bridge"
)

// When locks only the requests for which the condition is true. All other requests run without a
// lock. The condition must be safe for concurrent use. A nil condition panics.
func (k Key[R]) When(condition func(R) bool) Key[R] {
	must(condition != nil, "When needs a condition")
	return k.each("When", func(node bridge.Node[R]) bridge.Node[R] {
		about, read := *node.About, node.Read
		about.Text += ".When(" + functionOf(condition) + ")"
		return bridge.Node[R]{About: &about, Read: func(env bridge.Env, r R) (lockKey, error) {
			if !condition(r) {
				return lockKey{}, ErrSkip
			}
			return read(env, r)
		}}
	})
}

// Named puts a name before the key, to separate two kinds of key: with Named("account") and
// Named("user"), account 42 and user 42 do not exclude each other. Routes with the same name and
// key exclude each other, whatever their paths are.
//
// The key is written as name, colon, key: "account:42". So Do and LockAll lock the same
// account by that key. The two accounts of a transfer need the same name, because an account
// is the source of one transfer and the target of another. A name consists of letters, digits,
// "-", "_", "." and "/", and does not begin with a digit. Any other name panics. The name "i"
// also panics, because it marks idempotent requests. So the key is unique for any name and
// key, and differs from all keys of Join.
//
// The name is a part of the key. Added or changed later, it makes other keys: old and new processes
// do not exclude each other, and a request that is stored under the old key runs again. A name for
// logs and metrics alone is that of WithName.
//
// The events of the lock have the name, too: see Event.Name. Of several names it is the last one.
func (k Key[R]) Named(name string) Key[R] {
	if err := checkName(name); err != nil {
		panic(err.Error())
	}
	named := k.with("Named", strconv.Quote(name), func(_ R, key lockKey) lockKey {
		key.Raw, key.Name = name+":"+key.Raw, name
		return key
	})
	// The About is new: with has copied it, so that the key from which this one is made stays as it is.
	named.node.About.Names = []string{name}
	return named
}

// Hashed replaces the key by its SHA-256 (base64url, 43 characters). Long keys become short,
// and keys cannot be read by accident in Redis. A reader who can guess keys can still find
// them: to prevent that, use HMAC.
func (k Key[R]) Hashed() Key[R] {
	return k.with("Hashed", "", func(_ R, key lockKey) lockKey {
		sum := sha256.Sum256([]byte(key.Raw))
		key.Raw = base64.RawURLEncoding.EncodeToString(sum[:])
		return key
	})
}

// minFIPSSecret is the length of the shortest secret, in bytes, with which crypto/hmac does not
// panic under GODEBUG=fips140=only: 112 bits.
const minFIPSSecret = 14

// HMAC replaces the key by its HMAC-SHA-256 under a secret (RFC 2104, base64url, 43
// characters), so that personal data in keys does not get into Redis. Processes exclude each
// other only if they have the same secret. An empty secret panics, and so does one of less than
// 14 bytes under GODEBUG=fips140=only, which forbids it.
func (k Key[R]) HMAC(secret []byte) Key[R] {
	must(len(secret) > 0, "HMAC needs a secret")
	must(!fips140.Enforced() || len(secret) >= minFIPSSecret, "HMAC needs a secret of at least 14 bytes under GODEBUG=fips140=only")
	secret = append([]byte(nil), secret...)
	return k.with("HMAC", "", func(_ R, key lockKey) lockKey {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(key.Raw))
		key.Raw = base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
		return key
	})
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
