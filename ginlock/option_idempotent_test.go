package ginlock_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A request that lacks the optional header runs each time, without an attempt.
// A request with the header runs once.
func TestOptionalKey(t *testing.T) {
	t.Parallel()
	const named = "X-Request-Key"
	optional := ginlock.WithOptionalKey()
	for name, test := range map[string]struct {
		option ginlock.Option
		key    ginlock.KeyFunc
		header string // which the requests carry; "" is none
		status int
		runs   int
	}{
		"no header":                     {optional, byKey, "", http.StatusCreated, 2},
		"another header":                {optional, byKey, named, http.StatusCreated, 2},
		"the header":                    {optional, byKey, "Idempotency-Key", http.StatusCreated, 1},
		"no named header":               {ginlock.WithOptionalKey(named), ginlock.Header(named), "", http.StatusCreated, 2},
		"the named header":              {ginlock.WithOptionalKey(named), ginlock.Header(named), named, http.StatusCreated, 1},
		"Idempotency-Key beside a name": {ginlock.WithOptionalKey(named), ginlock.Header(named), "Idempotency-Key", http.StatusCreated, 2},
		"a required header":             {ginlock.WithMaxBody(1), byKey, "", http.StatusBadRequest, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs, attempts := 0, 0
			engine := gin.New()
			engine.POST("/", ginlock.Idempotent(locktest.New(t).Locker, test.key, test.option), func(c *gin.Context) {
				runs++
				if _, ok := ginlock.AttemptFromContext(c); ok {
					attempts++
				}
				c.Status(http.StatusCreated)
			})
			for range 2 {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
				if test.header != "" {
					r.Header.Set(test.header, "k")
				}
				w := httptest.NewRecorder()
				engine.ServeHTTP(w, r)
				if w.Code != test.status {
					t.Errorf("status %d, want %d", w.Code, test.status)
				}
			}
			if runs != test.runs {
				t.Errorf("the handler ran %d times, want %d", runs, test.runs)
			}
			if idempotent := test.runs == 1; (attempts > 0) != idempotent {
				t.Errorf("%d of %d runs had an attempt", attempts, runs)
			}
		})
	}
}

// Middleware refuses the options of Idempotent, and names the option.
func TestMiddlewareRefusesOptionsOfIdempotent(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]ginlock.Option{
		"WithMethods":         ginlock.WithMethods("PUT"),
		"WithOptionalKey":     ginlock.WithOptionalKey(),
		"WithFingerprint":     ginlock.WithFingerprint(func(*gin.Context) ([]byte, error) { return nil, nil }),
		"WithoutFingerprint":  ginlock.WithoutFingerprint(),
		"WithMaxBody":         ginlock.WithMaxBody(1),
		"WithStored":          ginlock.WithStored(func(int) bool { return true }),
		"WithUnknown":         ginlock.WithUnknown(func(core.Failure) bool { return true }),
		"FreeOnFailure":       ginlock.FreeOnFailure(),
		"WithReplayedHeaders": ginlock.WithReplayedHeaders("X-Payment"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if message, want := fmt.Sprint(recover()), name+" is an option of Idempotent"; !strings.Contains(message, want) {
					t.Errorf("panic %q, want %q", message, want)
				}
			}()
			ginlock.Middleware(adaptertest.UnusedLocker(t), byKey, option)
		})
	}
}
