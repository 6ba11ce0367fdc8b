package core_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The user and the password of the tests that sign in.
const (
	theUser     = "alice-in-wonderland"
	thePassword = "white-rabbit"
)

// startSecure runs a server with TLS. It has the user theUser with the documented rights.
func startSecure(t *testing.T) (server *redistest.Server, addr string, trust *tls.Config) {
	t.Helper()
	server, addr, trust = redistest.StartTLS(t)
	rule := []any{"acl", "setuser", theUser, "reset", "on", ">" + thePassword, "resetchannels"}
	for _, right := range strings.Fields(redistest.Rights) {
		rule = append(rule, right)
	}
	noError(t, server.Client(t).Do(t.Context(), rule...).Err())
	return server, addr, trust
}

// secure returns a client with short timeouts.
func secure(t *testing.T, options redis.Options) *redis.Client {
	t.Helper()
	options.DialTimeout, options.DialerRetries, options.ReadTimeout = 300*time.Millisecond, 1, 300*time.Millisecond
	rdb := redis.NewClient(&options)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestLocksOverTLSWithAUser(t *testing.T) {
	t.Parallel()
	_, addr, trust := startSecure(t)
	locker := func(opts ...core.Option) *core.Locker {
		t.Helper()
		rdb := redis.NewClient(&redis.Options{
			Addr: addr, TLSConfig: trust, Username: theUser, Password: thePassword,
			DialTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second,
		})
		t.Cleanup(func() { _ = rdb.Close() })
		return newLocker(t, rdb, append(opts, patient)...)
	}
	ours, theirs := locker(), locker()
	noError(t, ours.Check(t.Context()))
	lease := lock(t, ours, "k")
	waiting := &recorder{}
	waiter := locker(core.WithObserver(waiting.record))
	next := startLock(t, waiter, "k")
	suite.Eventually(t, "the waiter waits", func() bool { return len(waiting.of(core.Waiting)) == 1 })
	wantError(t, errorOf(theirs.TryLock(t.Context(), "k")), core.ErrBusy)
	release(t, lease)
	release(t, next())
}

// No error, event or log of a failed connection contains the user or the password, and each
// call fails soon.
func TestNoErrorContainsCredentials(t *testing.T) {
	t.Parallel()
	server, addr, trust := startSecure(t)
	plain := server.Addr()
	tests := map[string]redis.Options{
		"wrong password":       {Addr: addr, TLSConfig: trust, Username: theUser, Password: thePassword + "s"},
		"wrong user":           {Addr: addr, TLSConfig: trust, Username: theUser + "s", Password: thePassword},
		"wrong authority":      {Addr: addr, TLSConfig: redistest.UntrustedTLS(t), Username: theUser, Password: thePassword},
		"plain to TLS":         {Addr: addr, Username: theUser, Password: thePassword},
		"TLS to plain":         {Addr: plain, TLSConfig: trust, Username: theUser, Password: thePassword},
		"password, not hashed": {Addr: plain, Username: theUser, Password: "wrong-" + thePassword},
	}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := &recorder{}
			var log logBuffer
			locks := newLocker(t, secure(t, options), log.all(core.WithWait(200*time.Millisecond),
				core.WithObserver(events.record))...)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, tryErr := locks.TryLock(ctx, "k")
			_, lockErr := locks.Lock(ctx, "k")
			doErr := locks.Do(ctx, "k", func(context.Context) error { return nil })
			checkErr := locks.Check(ctx)
			if ctx.Err() != nil {
				t.Error("the calls took more than 20 s")
			}
			var texts []string
			for _, err := range []error{tryErr, lockErr, doErr, checkErr} {
				wantError(t, err, core.ErrUnavailable)
				texts = append(texts, fmt.Sprintf("%s %v %+v %#v", err, err, err, err))
			}
			t.Log(checkErr)
			for _, event := range events.all() {
				texts = append(texts, fmt.Sprintf("%v %+v %s", event, event, event.Err))
			}
			for _, text := range append(texts, log.String()) {
				if strings.Contains(text, "alice") || strings.Contains(text, "rabbit") {
					t.Errorf("contains credentials: %s", text)
				}
			}
			if len(events.of(core.Refused)) == 0 || log.String() == "" {
				t.Error("the observers received no refusal")
			}
		})
	}
}

// A server quotes the arguments of an unknown command in its error. The arguments of AUTH are
// credentials, those of SET and EVALSHA are a key and a token. No error contains them, and no error
// that it wraps.
func TestNoErrorContainsArgumentsOfUnknownCommand(t *testing.T) {
	t.Parallel()
	user := redis.Options{Username: theUser, Password: thePassword}
	for name, test := range map[string]struct {
		args    []string
		options redis.Options
	}{
		"AUTH":    {append(disabled("AUTH"), disabled("HELLO")...), user},
		"HELLO":   {disabled("HELLO"), user},
		"SET":     {disabled("SET"), redis.Options{}},
		"EVALSHA": {disabled("EVALSHA"), redis.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "AUTH" && redistest.MinimalRights() {
				t.Skip("the administrator of the test has to sign in, and cannot without AUTH")
			}
			server := redistest.Start(t, test.args...)
			test.options.Addr = server.Addr()
			locks, events := observed(t, secure(t, test.options), patient)
			const key = "a-private-key"
			lease, tried := locks.TryLock(t.Context(), key)
			if tried == nil { // the release needs the command
				tried = lease.Release(t.Context())
			}
			errs := map[string]error{
				"TryLock": tried, "Begin": errorOf(locks.Begin(t.Context(), key, nil)), "Check": locks.Check(t.Context()),
			}
			for _, event := range events.all() {
				errs[event.Kind.String()] = event.Err
			}
			for what, err := range errs {
				if err == nil && what != "acquired" {
					t.Errorf("%s: no error", what)
				}
				for ; err != nil; err = errors.Unwrap(err) {
					text := fmt.Sprintf("%v %+v", err, err)
					for _, secret := range []string{"alice", "rabbit", key, "args beginning"} {
						if strings.Contains(text, secret) {
							t.Errorf("%s: %T contains %q: %v", what, err, secret, err)
						}
					}
				}
			}
		})
	}
}
