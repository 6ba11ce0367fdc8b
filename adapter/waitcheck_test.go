package adapter

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// A wait that is not shorter than a timeout of the server is reported once.
func TestWaitBeyondTimeoutOfServerIsReported(t *testing.T) {
	t.Parallel()
	const write, read = "WriteTimeout", "ReadTimeout"
	for name, test := range map[string]struct {
		wait   time.Duration
		server *http.Server
		change func(r *http.Request)
		want   string // the timeout; "" is no report
	}{
		"longer":     {3 * time.Second, &http.Server{WriteTimeout: 2 * time.Second}, nil, write},
		"equal":      {2 * time.Second, &http.Server{WriteTimeout: 2 * time.Second}, nil, write},
		"shorter":    {time.Second, &http.Server{WriteTimeout: 2 * time.Second}, nil, ""},
		"no wait":    {0, &http.Server{WriteTimeout: 2 * time.Second, ReadTimeout: 2 * time.Second}, nil, ""},
		"no timeout": {time.Hour, &http.Server{}, nil, ""},
		"negative":   {time.Hour, &http.Server{WriteTimeout: -1, ReadTimeout: -1}, nil, ""},
		"no server":  {time.Hour, nil, nil, ""},

		"longer than reading":     {3 * time.Second, &http.Server{ReadTimeout: 2 * time.Second}, nil, read},
		"as long as reading":      {2 * time.Second, &http.Server{ReadTimeout: 2 * time.Second}, nil, read},
		"shorter than reading":    {time.Second, &http.Server{ReadTimeout: 2 * time.Second}, nil, ""},
		"longer than the header":  {time.Hour, &http.Server{ReadHeaderTimeout: 2 * time.Second}, nil, ""},
		"a body of any length":    {time.Hour, &http.Server{ReadTimeout: 2 * time.Second}, func(r *http.Request) { r.ContentLength = -1 }, read},
		"a body read for the key": {time.Hour, &http.Server{ReadTimeout: 2 * time.Second}, readBody(100), ""},
		"a part of a body":        {time.Hour, &http.Server{ReadTimeout: 2 * time.Second}, readBody(1), read},
		"a form that was parsed":  {time.Hour, &http.Server{ReadTimeout: 2 * time.Second}, parseForm, ""},
		"no body":                 {time.Hour, &http.Server{ReadTimeout: 2 * time.Second}, func(r *http.Request) { r.Body = http.NoBody }, ""},
		"no body of a client":     {time.Hour, &http.Server{ReadTimeout: 2 * time.Second}, func(r *http.Request) { r.Body = nil }, ""},
		"an empty body":           {time.Hour, &http.Server{ReadTimeout: 2 * time.Second}, func(r *http.Request) { r.ContentLength = 0 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var warned []core.Event
			rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
			t.Cleanup(func() { _ = rdb.Close() })
			locks := core.Must(core.New(rdb, core.WithWait(test.wait), core.WithObserver(func(e core.Event) { warned = append(warned, e) })))
			check := newWaitCheck("nethttplock", locks)
			send := func(ctx context.Context) {
				r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("a=b"))
				check.check(r.Context())
				if test.change != nil {
					test.change(r)
				}
				check.checkBody(r)
			}
			ctx := t.Context()
			send(ctx) // not by a server
			if test.server != nil {
				ctx = context.WithValue(ctx, http.ServerContextKey, test.server)
			}
			for range 2 {
				send(ctx)
			}
			if test.want == "" {
				if len(warned) != 0 {
					t.Errorf("warned %v", warned)
				}
				return
			}
			if len(warned) != 1 || warned[0].Kind != core.Warned {
				t.Fatalf("warned %v", warned)
			}
			for _, part := range []string{"reqlock: nethttplock: ", "WithWait is " + test.wait.String(), test.want + " of the http.Server is 2s"} {
				if !strings.Contains(warned[0].Err.Error(), part) {
					t.Errorf("%v, without %q", warned[0].Err, part)
				}
			}
		})
	}
}

// readBody reads the body of a request up to a limit, as keys do.
func readBody(limit int64) func(r *http.Request) {
	return func(r *http.Request) {
		r.ContentLength = -1
		_, _ = ReadBody(r, limit)
	}
}

// parseForm parses the form, as a middleware before the lock may do.
func parseForm(r *http.Request) {
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	_ = r.ParseForm()
}
