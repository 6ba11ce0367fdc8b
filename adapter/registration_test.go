package adapter

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A key that does not fit its middleware is refused.
func TestKeyFitsItsMiddleware(t *testing.T) {
	t.Parallel()
	const self = "somelock"
	locks := adaptertest.UnusedLocker(t)
	key := core.Getter(strings.Clone)
	body := BodyKey("Body()", "", func(r string, _ int64) (string, error) { return r, nil })
	read := key.SharedWhen(func(string) bool { return true })
	lock := func(key core.Key[string], opts ...core.Option) error {
		_, err := NewLock(self, "Middleware", locks, key, opts)
		return err
	}
	request := NetHTTP(func(string) *http.Request { return nil }, strings.Clone)
	once := func(key core.Key[string], opts ...core.Option) error {
		_, err := NewIdempotentHTTP(self, "Idempotent", locks, key, request, opts)
		return err
	}
	lacking := request
	lacking.Path = nil
	_, lacksPath := NewIdempotentHTTP(self, "Idempotent", locks, key, lacking, nil)
	_, lacksAll := NewIdempotentRPC(self, "Idempotent", locks, key, RPC[string]{}, nil)
	for name, test := range map[string]struct {
		err  error
		want string // "": accepted
	}{
		"zero Key":                {lock(core.Key[string]{}), "Middleware needs a key"},
		"All":                     {lock(core.All(key, key)), ""},
		"SharedWhen":              {lock(read), "SharedWhen needs core.WithWait above 0"},
		"SharedWhen, WithWait":    {lock(read, core.WithWait(time.Second)), ""},
		"Permits, WithFencing":    {lock(core.All(key, key.Permits(2)), core.WithFencing(true)), "Permits: WithFencing needs numbers"},
		"one permit of the last":  {lock(key.Permits(2).Permits(1), core.WithFencing(true)), ""},
		"Shared, WithMinHold":     {lock(core.First(key, key.Shared()), core.WithMinHold(time.Second)), "Shared: WithMinHold cannot keep"},
		"no body":                 {lock(key, core.WithMaxBody(1)), "core.WithMaxBody has no effect on Middleware"},
		"a body in All":           {lock(core.All(key, body.Named("a")), core.WithMaxBody(1)), ""},
		"once, zero Key":          {once(core.Key[string]{}), "Idempotent needs a key"},
		"once, All":               {once(core.All(key)), "Idempotent has one key"},
		"once, Permits":           {once(core.First(key, key.Permits(2))), "Idempotent needs a key without Permits and Shared"},
		"once, SharedWhen":        {once(read), "Idempotent needs a key without Permits and Shared"},
		"once, one that has none": {once(core.Join(key, body)), ""},
		"once, no Path":           {lacksPath, "Idempotent needs the function Path of its Accessors"},
		"once, no function":       {lacksAll, "Idempotent needs the function Method of its RPC"},
		"once, WithFailOpen":      {once(key, core.WithFailOpen(true)), "Idempotent needs a locker without WithFailOpen"},
		"once, WithShared":        {once(key, core.WithShared(true)), "WithShared has no effect on Idempotent"},
	} {
		if (test.err == nil) != (test.want == "") || test.err != nil && !strings.HasPrefix(test.err.Error(), "reqlock: "+self+": "+test.want) {
			t.Errorf("%s: %v, want %q", name, test.err, test.want)
		}
	}
}

func TestRequirePanics(t *testing.T) {
	t.Parallel()
	adaptertest.WantPanic(t, func() { Name("somelock").Require(false, "no") }, "reqlock: somelock: no")
}
