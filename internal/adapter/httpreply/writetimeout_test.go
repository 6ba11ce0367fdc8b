package httpreply_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpreply"
)

// A wait that is not shorter than the WriteTimeout of the server is reported once.
func TestWaitBeyondWriteTimeoutIsReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wait   time.Duration
		server *http.Server
		want   bool
	}{
		"longer":     {3 * time.Second, &http.Server{WriteTimeout: 2 * time.Second}, true},
		"equal":      {2 * time.Second, &http.Server{WriteTimeout: 2 * time.Second}, true},
		"shorter":    {time.Second, &http.Server{WriteTimeout: 2 * time.Second}, false},
		"no wait":    {0, &http.Server{WriteTimeout: 2 * time.Second}, false},
		"no timeout": {time.Hour, &http.Server{}, false},
		"negative":   {time.Hour, &http.Server{WriteTimeout: -1}, false},
		"no server":  {time.Hour, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var warned []core.Event
			rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
			t.Cleanup(func() { _ = rdb.Close() })
			locks := core.Must(core.New(rdb, core.WithWait(test.wait), core.WithObserver(func(e core.Event) { warned = append(warned, e) })))
			check := httpreply.NewWaitCheck("nethttplock", locks)
			ctx := t.Context()
			check.Check(httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)) // not by a server
			if test.server != nil {
				ctx = context.WithValue(ctx, http.ServerContextKey, test.server)
			}
			for range 2 {
				check.Check(httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			}
			if !test.want {
				if len(warned) != 0 {
					t.Errorf("warned %v", warned)
				}
				return
			}
			if len(warned) != 1 || warned[0].Kind != core.Warned {
				t.Fatalf("warned %v", warned)
			}
			for _, part := range []string{"reqlock: nethttplock: ", "WithWait is " + test.wait.String(), "WriteTimeout of the http.Server is 2s"} {
				if !strings.Contains(warned[0].Err.Error(), part) {
					t.Errorf("%v, without %q", warned[0].Err, part)
				}
			}
		})
	}
}
