package adapter_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// A frame is a request of a framework, and contains another request: a text.
type frame struct{ text string }

func (f frame) request() string { return f.text }

// enter returns the keys under which a request runs.
func enter(t *testing.T, l *core.Locker, key core.Key[frame]) (keys string, err error) {
	t.Helper()
	ctx, release, err := core.Enter(t.Context(), l, frame{"a"}, key)
	defer release()
	for _, lease := range core.LeasesFromContext(ctx) {
		keys += lease.Key() + " "
	}
	return keys, err
}

func TestConvertReadsTheContainedRequest(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	broken := errors.New("broken")
	upper := core.Getter(strings.ToUpper).Named("upper")
	for name, test := range map[string]struct {
		key       core.Key[string]
		want      string
		wantError error
	}{
		"one key":  {upper, "upper:A ", nil},
		"several":  {core.All(upper, core.Getter(strings.Clone)), "upper:A a ", nil},
		"an error": {core.KeyOf(func(string) (string, error) { return "", broken }), "", broken},
	} {
		converted := adapter.Convert(test.key, frame.request)
		keys, err := enter(t, locks.Locker, converted)
		if keys != test.want || !errors.Is(err, test.wantError) || converted.String() != test.key.String() {
			t.Errorf("%s: %q, %v of %s", name, keys, err, converted)
		}
	}
	if zero := adapter.Convert(core.Key[string]{}, frame.request); zero.String() != "the zero Key" {
		t.Errorf("the zero Key becomes %s", zero)
	}
}

func TestBodyKeyGetsTheLimit(t *testing.T) {
	t.Parallel()
	body := adapter.BodyKey("Body()", "the body", func(_ frame, limit int64) (string, error) { return fmt.Sprint(limit), nil })
	for want, locks := range map[string]*locktest.Locks{
		"n:1048576 ": locktest.New(t),
		"n:5 ":       locktest.New(t, core.WithMaxBody(5)),
	} {
		if keys, err := enter(t, locks.Locker, body.Named("n")); keys != want || err != nil {
			t.Errorf("%q, %v; want %q", keys, err, want)
		}
	}
	_, err := adapter.BodyKey("Body()", "the body", func(frame, int64) (string, error) { return "", nil }).Read(frame{})
	if refusal, _ := core.RefusalOf(err); !errors.Is(err, core.ErrNoKey) || refusal.Part != "the body" || !strings.Contains(err.Error(), "Body()") {
		t.Errorf("an empty body: %v", err)
	}
}

func TestTagsOfAKey(t *testing.T) {
	t.Parallel()
	plain := core.Getter(frame.request)
	a, b := adapter.Tag(plain, "a"), adapter.Tag(plain, "b")
	for name, test := range map[string]struct {
		key  core.Key[frame]
		want string
	}{
		"none":           {plain, "[]"},
		"two":            {adapter.Tag(a, "b"), "[a b]"},
		"beside":         {adapter.Tag(a, "c"), "[a c]"},
		"of a method":    {a.Named("n").Hashed().Permits(2).Describe("a", ""), "[a]"},
		"of parts":       {core.Join(a, plain, b), "[a b]"},
		"of a choice":    {core.Switch(frame.request, map[string]core.Key[frame]{"x": a}), "[a]"},
		"of several":     {core.All(a, b).Named("n"), "[a b]"},
		"of all":         {adapter.Tag(core.All(plain), "c").Named("n"), "[c]"},
		"of a converted": {adapter.Convert(adapter.Tag(core.Getter(strings.Clone), "a"), frame.request), "[a]"},
	} {
		if got := fmt.Sprint(adapter.Tags(test.key)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
