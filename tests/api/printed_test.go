package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/nethttplock"
	"github.com/reqlock/reqlock/protolock"
)

// secret is a part of each key and each stored answer.
const secret = "jane-doe"

// No exported type prints a key or a stored answer, in any of the ways in which a program
// logs it.
func TestNoTypePrintsAKeyOrAnAnswer(t *testing.T) {
	t.Parallel()
	samples := samplesOf(t)
	for name := range samples {
		for _, sample := range samples[name] {
			for way, text := range printed(t, sample) {
				if slices.ContainsFunc(secretForms(), func(form string) bool { return strings.Contains(text, form) }) {
					t.Errorf("%s of %s: %s", way, name, text)
				}
			}
		}
	}
	for _, name := range typesWithFields(t) {
		if len(samples[name]) == 0 {
			t.Errorf("%s has no sample: add one with a secret wherever the type can hold a key or an answer", name)
		}
	}
}

// secretForms returns the secret as text, and as package fmt prints bytes and hex digits.
func secretForms() []string {
	octets := []byte(secret)
	return []string{
		secret, fmt.Sprintf("%x", octets), strings.Trim(fmt.Sprintf("%d", octets), "[]"),
		strings.Trim(fmt.Sprintf("%#v", octets), "[]byte{}"),
	}
}

// typesWithFields returns the exported types of the main module that can hold text. Package adapter
// is for authors who hold requests and answers in their hands, as those of net/http do.
func typesWithFields(t *testing.T) (names []string) {
	t.Helper()
	holding := regexp.MustCompile(`(?m)^type (\w+) (struct|string|\[.*|map\[.*)$`)
	for _, dir := range packages(t)["."] { // the other modules have no keys
		if strings.HasPrefix(dir, "adapter") {
			continue
		}
		text, err := os.ReadFile(fileOf(dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range holding.FindAllStringSubmatch(string(text), -1) {
			names = append(names, path.Base(dir)+"."+found[1])
		}
	}
	return names
}

// printed returns what programs print of a value, alone and inside of others.
func printed(t *testing.T, sample any) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		texts[verb] = fmt.Sprintf(verb, sample)
		texts[verb+" inside"] = fmt.Sprintf(verb, struct{ Any []any }{[]any{sample}})
	}
	asJSON, err := json.Marshal(sample)
	if err == nil { // a function has no JSON
		texts["JSON"] = string(asJSON)
	}
	var text, object bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("", "sample", sample, slog.Group("inside", "sample", []any{sample}))
	slog.New(slog.NewJSONHandler(&object, nil)).Info("", "sample", sample, slog.Group("inside", "sample", []any{sample}))
	texts["slog text"], texts["slog JSON"] = text.String(), object.String()
	return texts
}

// samplesOf returns values of each type, by its name. The values that can hold a key or an
// answer have the secret.
func samplesOf(t *testing.T) map[string][]any {
	t.Helper()
	ctx := context.Background()
	var mu sync.Mutex
	var events []any
	locks := locktest.New(t, core.WithName("account"), core.WithWait(0), core.WithObserver(func(e core.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	}))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const key = "account:" + secret
	answer := []byte(`{"owner":"` + secret + `"}`)

	lease, err := locks.Lock(ctx, key)
	must(err)
	given, err := locks.With(core.WithFencing(true)).Lock(ctx, key+"0")
	must(err)
	ticket, err := given.Handover(ctx, time.Minute)
	must(err)
	nested, err := locks.Lock(lease.Context(), key)
	must(err)
	one, err := locks.LockAll(ctx, []string{key + "1"})
	must(err)
	several, err := locks.LockAll(ctx, []string{key + "2", key + "3", key + "2"})
	must(err)
	_, busy := locks.Lock(ctx, key)
	if !errors.Is(busy, core.ErrBusy) {
		t.Fatal(busy)
	}
	done, err := locks.Begin(ctx, key, nil)
	must(err)
	must(done.Commit(ctx, answer))
	replay, err := locks.Begin(ctx, key, nil)
	must(err)
	running, err := locks.Begin(ctx, key+"4", []byte(secret))
	must(err)
	inner, err := locks.Begin(running.Lease().Context(), key+"4", []byte(secret))
	must(err)
	record, err := locks.ReadRecord(ctx, key)
	must(err)
	made, err := nethttplock.NewAnswer(http.StatusCreated, http.Header{"X-Owner": {secret}}, answer)
	must(err)
	named, err := core.Getter(func(string) string { return key }).Named("account").Read("")
	must(err)
	sealer, err := core.NewAESSealer("now", map[string][]byte{"now": []byte(strings.Repeat(secret, 4))})
	must(err)
	failed, err := locks.Begin(ctx, key+"5", nil)
	must(err)
	must(failed.Unknown(ctx, nil))
	unknown, err := locks.ReadRecord(ctx, key+"5")
	must(err)
	must(locks.Resolve(ctx, key+"5", core.Answered(made), unknown.Attempt))
	event := core.Event{Err: busy}
	mu.Lock()
	defer mu.Unlock()
	for _, e := range events {
		event = e.(core.Event) //nolint:forcetypeassert // see the observer
	}

	samples := map[string][]any{
		"core.AESSealer": {sealer},
		"core.Attempt":   {done, replay, running, inner},
		"core.AttemptID": {record.Attempt},
		"core.Change":    {*event.Change, event.Change},
		"core.Error":     {busy},
		"core.Event":     events,
		"core.EventKey":  {event.Key},
		"core.Failure":   {core.Failure{Err: busy}},

		"core.Instance":    {core.Instance{Service: "payments"}},
		"core.RequestKey":  {named, &named},
		"core.Ticket":      {ticket},
		"core.Lease":       {lease, nested, running.Lease(), lease.Context(), nested.Context()},
		"core.LeaseSet":    {one, several, one.Context(), several.Context()},
		"core.Locker":      {locks.Locker},
		"core.OpenCommits": {locks.OpenCommits()},
		"core.Refusal":     {core.Refusal{}},
		"core.Answer":      {made, &made},
		"core.Record":      {record},
		"core.Resolution":  {core.NotDone(), core.Done(), core.Answered(made)},

		"adapter.Name": {adapter.Name("somelock")},

		"locktest.Locks":   {locks},
		"locktest.Process": {locks.Process()},

		"grpclock.Call":    {grpclock.NewCall(running.Lease().Context(), "/bank/Pay", wrapperspb.String(secret))},
		"grpclock.Failure": {grpclock.Failure{Err: busy}},

		"protolock.Rule":   {protolock.Rule{}},
		"protolock.Option": {protolock.Source("user", grpclock.Literal(key))},
		"protolock.Rules":  {&protolock.Rules{}},
	}
	maps.Copy(samples, inspected(t, key))
	return samples
}
