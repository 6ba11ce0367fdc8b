package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A server quotes the arguments of an unknown command in its error. The arguments of AUTH
// are credentials, and the arguments of SET are a key and a token.
func TestNoErrorContainsArgumentsOfUnknownCommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args    []string
		options redis.Options
	}{
		"AUTH":  {append(disabled("AUTH"), disabled("HELLO")...), redis.Options{Username: theUser, Password: thePassword}},
		"HELLO": {disabled("HELLO"), redis.Options{Username: theUser, Password: thePassword}},
		"SET":   {disabled("SET"), redis.Options{}},
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
			_, tried := locks.TryLock(t.Context(), key)
			_, begun := locks.Begin(t.Context(), key, nil)
			done := locks.Do(t.Context(), key, func(context.Context) error { return nil })
			for what, err := range map[string]error{"TryLock": tried, "Begin": begun, "Do": done, "Check": locks.Check(t.Context())} {
				text := fmt.Sprintf("%v %+v", err, err)
				for _, secret := range []string{"alice", "rabbit", key, "args beginning"} {
					if strings.Contains(text, secret) {
						t.Errorf("the error of %s contains %q: %v", what, secret, err)
						break
					}
				}
			}
			for _, event := range events.all() {
				if text := fmt.Sprint(event.Err); strings.Contains(text, "rabbit") || strings.Contains(text, key) {
					t.Errorf("%v: %s", event.Kind, text)
				}
			}
		})
	}
}
