package core_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// The user and the password of the tests that sign in.
const (
	theUser     = "alice-in-wonderland"
	thePassword = "white-rabbit"
)

// startSecure runs a server that speaks TLS and knows theUser, with no more than
// the rights.
func startSecure(t *testing.T) (server *redistest.Server, addr string, trust *tls.Config) {
	t.Helper()
	server, addr, trust = redistest.StartTLS(t)
	order := []any{"acl", "setuser", theUser, "reset", "on", ">" + thePassword, "resetchannels"}
	for _, word := range strings.Fields(redistest.Rights) {
		order = append(order, word)
	}
	if err := server.Client(t).Do(t.Context(), order...).Err(); err != nil {
		t.Fatal(err)
	}
	return server, addr, trust
}

// secure returns a client that gives up soon.
func secure(t *testing.T, options redis.Options) *redis.Client {
	t.Helper()
	options.DialTimeout, options.DialerRetries, options.ReadTimeout = 300*time.Millisecond, 1, 300*time.Millisecond
	rdb := redis.NewClient(&options)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestLocksOverTLSWithAUser(t *testing.T) {
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
	if err := ours.Check(t.Context()); err != nil {
		t.Error(err)
	}
	lease := lock(t, ours, "k")
	waiting := &events{}
	waiter := locker(core.WithObserver(waiting.observe))
	handed := make(chan *core.Lease, 1)
	go func() {
		lease, err := waiter.Lock(t.Context(), "k")
		if err != nil {
			t.Errorf("waiter: %v", err)
		}
		handed <- lease
	}()
	await(t, "one waits", func() bool { return len(waiting.of(core.Waiting)) == 1 })
	_, err := theirs.TryLock(t.Context(), "k")
	wantError(t, err, core.ErrBusy)
	release(t, lease)
	if lease := <-handed; lease != nil {
		release(t, lease)
	}
}

// Whatever goes wrong while a client signs in, nobody hears of whom, and everybody
// hears soon.
func TestNoErrorTellsOfCredentials(t *testing.T) {
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
			heard := &events{}
			var log bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			locks := newLocker(t, secure(t, options), core.WithWait(200*time.Millisecond),
				core.WithObserver(heard.observe), core.WithObserver(core.SlogObserver(logger)))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, tried := locks.TryLock(ctx, "k")
			_, locked := locks.Lock(ctx, "k")
			done := locks.Do(ctx, "k", func(context.Context) error { return nil })
			checked := locks.Check(ctx)
			if ctx.Err() != nil {
				t.Error("took too long")
			}
			var texts []string
			for _, err := range []error{tried, locked, done, checked} {
				wantError(t, err, core.ErrUnavailable)
				texts = append(texts, fmt.Sprintf("%s %v %+v %#v", err, err, err, err))
			}
			t.Log(checked)
			for _, event := range heard.all {
				texts = append(texts, fmt.Sprintf("%v %+v %s", event, event, event.Err))
			}
			for _, text := range append(texts, log.String()) {
				if strings.Contains(text, "alice") || strings.Contains(text, "rabbit") {
					t.Errorf("tells of credentials: %s", text)
				}
			}
			if len(heard.of(core.Refused)) == 0 || log.Len() == 0 {
				t.Error("nobody was told")
			}
		})
	}
}
