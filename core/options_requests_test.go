package core_test

import (
	"context"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// The options of requests name what is wrong. New refuses them, and With panics.
func TestErrorNamesTheBadOptionOfRequests(t *testing.T) {
	t.Parallel()
	for want, opt := range map[string]core.Option{
		"WithMethods: there is no method":          core.WithMethods(),
		"WithMethods: a method is empty":           core.WithMethods("POST", ""),
		"WithMethods: GET is idempotent by itself": core.WithMethods("PUT", "get"),
		"WithMethods: QUERY is idempotent":         core.WithMethods("Query"),
		"WithOptionalKey: a name is empty":         core.WithOptionalKey("X-Key", ""),
		"WithMaxBody: 0 is below 1":                core.WithMaxBody(0),
		"WithBusyStatus: 408 is none of":           core.WithBusyStatus(408),
		`WithProblemType: "" is neither`:           core.WithProblemType(""),
		`WithProblemType: "errors/" is neither`:    core.WithProblemType("errors/"),
		`WithProblemType: "//host/" is neither`:    core.WithProblemType("//host/"),
		`WithProblemType: "https:/a/" is neither`:  core.WithProblemType("https:/a/"),
		`WithProblemType: "/a b/" is neither`:      core.WithProblemType("/a b/"),
		`WithProblemType: the code follows "/e1"`:  core.WithProblemType("/e1"),
		"WithStored: the function is nil":          core.WithStored(nil),
		"WithUnknown: the function is nil":         core.WithUnknown(nil),
		"WithReplayedHeaders: there is no header":  core.WithReplayedHeaders(),
		"WithFingerprint: the function is nil":     core.WithFingerprint[int](nil),
		"WithReference: the function is nil":       core.WithReference(nil),
	} {
		if err := adapter.CheckOptions(nil, opt); err == nil || !strings.HasPrefix(err.Error(), "reqlock: "+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A middleware refuses an option that has no effect on its requests, and another adapter's.
func TestMiddlewareRefusesOptionsWithoutEffect(t *testing.T) {
	t.Parallel()
	const httpLock, httpIdempotent, rpcLock, rpcIdempotent = bridge.HTTPLock, bridge.HTTPIdempotent, bridge.RPCLock, bridge.RPCIdempotent
	locks := newLocker(t, newEmbedded(t))
	color := func(a adapter.Name, scope adapter.Scope) core.Option {
		return adapter.NewSetting[string](a, "WithColor", scope).Option("red")
	}
	for _, test := range []struct {
		name   string
		option core.Option
		on     bridge.Middleware // that accept it
		want   string            // in the error of the others of RPC
	}{
		{"WithWait", core.WithWait(0), bridge.All, ""},
		{"WithMinHold", core.WithMinHold(1e9), bridge.Locks, "WithMinHold has no effect on Once: leave it out"},
		{"WithMinHold(0)", core.WithMinHold(0), bridge.All, ""},
		{"WithPermits", core.WithPermits(2), bridge.Locks, "leave it out"},
		{"WithShared", core.WithShared(true), bridge.Locks, "leave it out"},
		{"WithRetention", core.WithRetention(1e9), bridge.Idempotents, "WithRetention has no effect on Lock: leave it out"},
		{"WithRerunUnknown", core.WithRerunUnknown(true), bridge.Idempotents, "leave it out"},
		{"WithMaxAnswer", core.WithMaxAnswer(1), bridge.Idempotents, "leave it out"},
		{"WithClientCancel", core.WithClientCancel(true), bridge.Idempotents, "leave it out"},
		{"WithReference", core.WithReference(func(context.Context) string { return "" }), bridge.Idempotents, "leave it out"},
		{"WithFirstShown", core.WithFirstShown(true), bridge.Idempotents, "leave it out"},
		{"WithOptionalKey", core.WithOptionalKey(), bridge.Idempotents, "leave it out"},
		{"WithFreeOnFailure", core.WithFreeOnFailure(), bridge.Idempotents, "leave it out"},
		{"WithFingerprint", core.WithFingerprint(func(int) ([]byte, error) { return nil, nil }), bridge.Idempotents, "leave it out"},
		{"WithoutFingerprint", core.WithoutFingerprint(), bridge.Idempotents, "leave it out"},
		{"WithMethods", core.WithMethods("PUT"), httpIdempotent, "let the key choose the methods"},
		{"WithStored", core.WithStored(func(int) bool { return true }), httpIdempotent, "core.WithStored has no effect on Once: write somelock.WithStored"},
		{"WithUnknown", core.WithUnknown(func(core.Failure) bool { return true }), httpIdempotent, "write somelock.WithUnknown"},
		{"WithReplayedHeaders", core.WithReplayedHeaders("X-Payment"), httpIdempotent, "somelock replays metadata without it"},
		{"WithBusyStatus", core.WithBusyStatus(429), httpLock | httpIdempotent, "write somelock.WithErrorHandler, which chooses"},
		{"WithProblemType", core.WithProblemType("https://a.example/e#"), httpLock | httpIdempotent, "leave it out, because the ErrorInfo"},
		{"WithMaxBody", core.WithMaxBody(1), httpLock | httpIdempotent, "limit the messages"},
		{"for all", color("somelock", adapter.ForAll), bridge.All, ""},
		{"for locks", color("somelock", adapter.ForLocks), bridge.Locks, "WithColor has no effect on Once: leave it out"},
		{"for idempotent", color("somelock", adapter.ForIdempotent), bridge.Idempotents, "WithColor has no effect on Lock: leave it out"},
		{"another's", color("otherlock", adapter.ForAll), 0, "otherlock.WithColor is an option of another adapter: write options of somelock and core"},
		{"nil", nil, 0, "an option is nil"},
	} {
		for kind, name := range map[bridge.Middleware]string{httpLock: "Lock", httpIdempotent: "Once", rpcLock: "Lock", rpcIdempotent: "Once"} {
			_, err := bridge.View(locks, "somelock", name, kind, []core.Option{test.option})
			if accepted := test.on&kind != 0; accepted != (err == nil) {
				t.Errorf("%s, %d: %v", test.name, kind, err)
			}
			if err == nil {
				continue
			}
			if !strings.HasPrefix(err.Error(), "reqlock: somelock: ") || kind == rpcIdempotent && !strings.Contains(err.Error(), test.want) &&
				!strings.Contains(test.want, "on Lock") {
				t.Errorf("%s, %d: %v does not contain %q", test.name, kind, err, test.want)
			}
		}
		if test.option != nil && locks.With(test.option) == nil { // New and With accept all of them
			t.Errorf("%s: no view", test.name)
		}
	}
}

// A later option replaces an earlier one, and changes nothing for the Locker of a view.
func TestLaterOptionOfRequestsCounts(t *testing.T) {
	t.Parallel()
	unknown := adapter.NewSetting[func() string]("somelock", "WithUnknown", adapter.ForIdempotent)
	says := func(text string) core.Option { return unknown.Option(func() string { return text }) }
	locks := newLocker(t, newEmbedded(t), says("a"), core.WithReplayedHeaders("X-A"), core.WithoutFingerprint())
	for name, test := range map[string]struct {
		view *core.Locker
		want string // of unknown; "" if it is not set
	}{
		"the Locker":                       {locks, "a"},
		"a view":                           {locks.With(says("b")), "b"},
		"the Locker, as before":            {locks, "a"},
		"WithFreeOnFailure":                {locks.With(core.WithFreeOnFailure()), ""},
		"WithFreeOnFailure, and a later":   {locks.With(core.WithFreeOnFailure(), says("c")), "c"},
		"a WithUnknown of another adapter": {locks.With(adapter.NewSetting[int]("otherlock", "WithUnknown", adapter.ForAll).Option(1)), "a"},
	} {
		if got, isSet := unknown.Value(test.view); isSet != (test.want != "") || isSet && got() != test.want {
			t.Errorf("%s: set %v", name, isSet)
		}
	}
	view := locks.With(core.WithReplayedHeaders("X-B"), core.WithFingerprint(func(int) ([]byte, error) { return nil, nil }))
	got, before := bridge.SettingsOf(view), bridge.SettingsOf(locks)
	if strings.Join(got.ReplayedHeaders, " ") != "X-A X-B" || got.Fingerprint == nil || got.NoFingerprint {
		t.Errorf("the view: %+v", got)
	}
	if strings.Join(before.ReplayedHeaders, " ") != "X-A" || before.Fingerprint != nil || !before.NoFingerprint {
		t.Errorf("the Locker: %+v", before)
	}
	if text := panicOf(func() { unknown.Option(nil) }); text != "reqlock: somelock: WithUnknown needs a function" {
		t.Errorf("a nil function: %q", text)
	}
}
