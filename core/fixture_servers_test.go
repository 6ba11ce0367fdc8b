package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A deployment is servers that the tests of the package share, and a prefix of keys that
// belongs to one test.
type deployment struct {
	*redistest.Deployment
	prefix string
}

// shared returns the servers of the kind that the tests of the package share, with a
// prefix of the test's own.
func shared(t *testing.T, kind redistest.Kind) *deployment {
	t.Helper()
	return &deployment{redistest.Shared(t, kind), redistest.OwnPrefix()}
}

// newLocker returns a Locker with the prefix of the test.
func (d *deployment) newLocker(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	return newLocker(t, rdb, append([]core.Option{core.WithPrefix(d.prefix)}, opts...)...)
}

// observed returns such a Locker, and the events that its observer receives.
func (d *deployment) observed(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) (*core.Locker, *recorder) {
	t.Helper()
	return observed(t, rdb, append([]core.Option{core.WithPrefix(d.prefix)}, opts...)...)
}

// name returns the name in Redis of the lock with this key.
func (d *deployment) name(key string) string { return d.prefix + key }

// companion returns the name of the queue ("q"), the fence counter ("f") or the record
// ("r") that belongs to the lock with this key.
func (d *deployment) companion(key, suffix string) string {
	return "{" + d.name(key) + "}:" + suffix
}

// locked returns how many of the keys are locked.
func (d *deployment) locked(ctx context.Context, rdb redis.UniversalClient, keys ...string) (n int64) {
	for _, key := range keys { // each by a command of its own, because they may be in several slots
		n += rdb.Exists(ctx, d.name(key)).Val()
	}
	return n
}

// locked returns how many of the keys are locked under the default prefix.
func locked(ctx context.Context, rdb redis.UniversalClient, keys ...string) int64 {
	return (&deployment{prefix: "reqlock:"}).locked(ctx, rdb, keys...)
}

// readsLate makes a client read replies that are late.
func readsLate(o *redis.Options) { o.ReadTimeout = time.Minute }

// behindProxy returns a server, a proxy before it, and a client of the proxy. Unless configure
// changes it, the ReadTimeout is short: an abandoned command ends soon.
func behindProxy(t *testing.T, configure ...func(*redis.Options)) (*redistest.Server, *redistest.Proxy, *redis.Client) {
	t.Helper()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	short := func(o *redis.Options) { o.ReadTimeout = time.Second }
	rdb := proxy.Client(t, append([]func(*redis.Options){short}, configure...)...)
	noError(t, rdb.Ping(t.Context()).Err())
	return server, proxy, rdb
}

// patient is a command timeout for tests in which only a busy machine causes delays.
var patient = core.WithCommandTimeout(10 * time.Second)

// as makes a client sign in as a user.
func as(user, password string) func(*redis.Options) {
	return func(o *redis.Options) { o.Username, o.Password = user, password }
}

// setUser makes a user with the password "secret" and all these rights except missing.
func setUser(t *testing.T, admin *redis.Client, user, rights, missing string) {
	t.Helper()
	rule := []any{"acl", "setuser", user, "reset", "on", ">secret", "resetchannels"}
	for _, right := range strings.Fields(rights) {
		if right != missing {
			rule = append(rule, right)
		}
	}
	noError(t, admin.Do(t.Context(), rule...).Err())
}

// wantFinding fails the test unless err is an error of Check with all these texts, of the
// kind ErrUnavailable.
func wantFinding(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %q", texts)
		return
	}
	wantError(t, err, core.ErrUnavailable)
	message := err.Error()
	if !strings.HasPrefix(message, "reqlock: check: ") {
		t.Errorf("got %q", message)
	}
	for _, text := range texts {
		if !strings.Contains(message, text) {
			t.Errorf("%q does not contain %q", message, text)
		}
	}
	if strings.Contains(message, "check:"+"0") || strings.Contains(message, "secret") || strings.Contains(message, "alice") {
		t.Errorf("%q contains a key or a credential", message)
	}
	var refusal *core.Error
	if !errors.As(err, &refusal) || refusal.Cause == nil {
		t.Errorf("no *Error with a cause: %#v", err)
	}
}

// closeLocker closes a Locker. Then its Checks have deleted all their keys.
func closeLocker(t *testing.T, locks *core.Locker) {
	t.Helper()
	noError(t, locks.Close(t.Context()))
}

// wantNoKeys fails the test if a server has keys.
func wantNoKeys(t *testing.T, rdb *redis.Client) {
	t.Helper()
	if keys := rdb.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("keys in Redis: %q", keys)
	}
}

// deadlines is an option of clients that makes callers send their own commands.
func deadlines(o *redis.Options) { o.ContextTimeoutEnabled = true }

// disabled returns the args of a server without a command.
func disabled(command string) []string { return []string{"--rename-command", command, ""} }

// configured returns a function that sets a parameter of a server.
func configured(name, value string) func(*testing.T, *redis.Client) {
	return func(t *testing.T, admin *redis.Client) {
		t.Helper()
		noError(t, admin.ConfigSet(t.Context(), name, value).Err())
	}
}

// do sends a command that needs no repair.
func do(t *testing.T, admin *redis.Client, command ...any) (repair func()) {
	t.Helper()
	noError(t, admin.Do(t.Context(), command...).Err())
	return func() {}
}
