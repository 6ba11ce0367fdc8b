package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A server that does not know a command repeats its arguments: those of AUTH are the
// credentials, and those of SET a key and a token.
func TestNoErrorRepeatsTheArgumentsOfAnUnknownCommand(t *testing.T) {
	for name, test := range map[string]struct {
		args    []string
		options redis.Options
	}{
		"AUTH":  {append(unknown("AUTH"), unknown("HELLO")...), redis.Options{Username: theUser, Password: thePassword}},
		"HELLO": {unknown("HELLO"), redis.Options{Username: theUser, Password: thePassword}},
		"SET":   {unknown("SET"), redis.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "AUTH" && redistest.MinimalRights() {
				t.Skip("nobody can sign in, and an administrator has to")
			}
			server := redistest.Start(t, test.args...)
			test.options.Addr = server.Addr()
			heard := &events{}
			locks := newLocker(t, secure(t, test.options), patient, core.WithObserver(heard.observe))
			const key = "the-key-of-somebody"
			_, tried := locks.TryLock(t.Context(), key)
			_, begun := locks.Begin(t.Context(), key, nil)
			done := locks.Do(t.Context(), key, func(context.Context) error { return nil })
			for what, err := range map[string]error{"TryLock": tried, "Begin": begun, "Do": done, "Check": locks.Check(t.Context())} {
				text := fmt.Sprintf("%v %+v", err, err)
				for _, secret := range []string{"alice", "rabbit", key, "args beginning"} {
					if strings.Contains(text, secret) {
						t.Errorf("%s tells of %q: %v", what, secret, err)
						break
					}
				}
			}
			for _, event := range heard.all {
				if text := fmt.Sprint(event.Err); strings.Contains(text, "rabbit") || strings.Contains(text, key) {
					t.Errorf("%v: %s", event.Kind, text)
				}
			}
		})
	}
}
