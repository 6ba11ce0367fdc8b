package core_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
)

// failing returns a described key function that fails.
func failing(err error) core.KeyFunc[string] {
	return core.Describe(`Header("X-Account")`, `the header "X-Account"`, func(string) (string, error) { return "", err })
}

// accountOf is a key function of a program, without a description.
func accountOf(string) (string, error) { return "", errors.New("no database") }

func TestErrorNamesTheKeyFunction(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		key        core.KeyFunc[string]
		kind       error
		want, part string
	}{
		"empty": {failing(nil), core.ErrNoKey, `reqlock: no key: Header("X-Account") is empty`, `the header "X-Account"`},
		"no key": {
			failing(core.ErrNoKey), core.ErrNoKey, `reqlock: no key: Header("X-Account") is empty`, `the header "X-Account"`,
		},
		"invalid": {
			failing(fmt.Errorf("%w: given 2 times", core.ErrInvalidKey)), core.ErrInvalidKey,
			`reqlock: invalid key: Header("X-Account"): given 2 times`, `the header "X-Account"`,
		},
		"too large": {
			failing(core.ErrBodyTooLarge), core.ErrBodyTooLarge, `reqlock: body too large: Header("X-Account")`, `the header "X-Account"`,
		},
		"inside others": {
			core.Named("a", core.Join(core.Hashed(failing(nil)))), core.ErrNoKey,
			`reqlock: no key: Header("X-Account") is empty`, `the header "X-Account"`,
		},
		"first": {
			core.First(failing(nil), core.Of(strings.TrimSpace), failing(nil)), core.ErrNoKey,
			`reqlock: no key: First(Header("X-Account"), Of(strings.TrimSpace), Header("X-Account")) is empty`,
			`the header "X-Account" or the header "X-Account"`,
		},
		"a function of the program": {
			core.Func(accountOf), nil, `reqlock: key function: core_test.accountOf: no database`, "",
		},
		"a named function of the program": {
			core.Named("account", accountOf), nil, `reqlock: key function: Named("account"): no database`, "",
		},
	} {
		_, err := test.key.Read("")
		if err == nil || err.Error() != test.want || test.kind != nil && !errors.Is(err, test.kind) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
		if outcome, _ := core.OutcomeOf(err); outcome.Part != test.part {
			t.Errorf("%s: the part is %q, want %q", name, outcome.Part, test.part)
		}
	}
	if _, err := failing(core.ErrSkip).Read(""); err != core.ErrSkip { //nolint:errorlint // unchanged
		t.Errorf("got %v", err)
	}
}

func TestObserverHearsOfKeysThatCannotBeRead(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	locks, events := observed(t, newEmbedded(t), core.WithObserver(core.SlogObserver(logger)))
	for _, key := range []core.KeyFunc[string]{failing(nil), core.Func(accountOf), failing(core.ErrSkip)} {
		_, release, err := core.Enter(t.Context(), locks, "", key)
		release()
		if errors.Is(err, core.ErrSkip) {
			t.Error(err)
		}
	}
	refused := events.of(core.Refused)
	if len(refused) != 2 || !errors.Is(refused[0].Err, core.ErrNoKey) || !refused[0].Key.IsEmpty() {
		t.Errorf("events %+v", refused)
	}
	for _, want := range []string{
		`level=DEBUG msg="lock refused" waited=0s error="reqlock: no key: Header(\"X-Account\") is empty"`,
		`level=WARN msg="lock refused" waited=0s error="reqlock: key function: core_test.accountOf: no database"`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
}

// pendingError is the error of a key function that is called again.
type pendingError struct{}

func (pendingError) Error() string   { return "not yet" }
func (pendingError) ReqlockPending() {}

func TestPendingKeyIsNoRefusal(t *testing.T) {
	t.Parallel()
	locks, events := observed(t, newEmbedded(t))
	_, _, err := core.Enter(context.Background(), locks, "", core.Named("a", func(string) (string, error) { return "", pendingError{} }))
	var pending pendingError
	if !errors.As(err, &pending) || len(events.all()) != 0 {
		t.Errorf("%v, events %+v", err, events.all())
	}
}
