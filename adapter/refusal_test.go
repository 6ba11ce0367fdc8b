package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/bridge"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err        error
		status     int
		code       string
		retryAfter string
	}{
		"busy":           {&core.Error{Kind: core.ErrBusy}, 409, "busy", "1"},
		"wait timeout":   {&core.Error{Kind: core.ErrWaitTimeout}, 409, "wait_timeout", "1"},
		"queue full":     {&core.Error{Kind: core.ErrQueueFull}, 429, "queue_full", "1"},
		"overloaded":     {&core.Error{Kind: core.ErrOverloaded}, 503, "overloaded", "1"},
		"no key":         {core.ErrNoKey, 400, "no_key", ""},
		"invalid key":    {fmt.Errorf("%w: secret", core.ErrInvalidKey), 400, "invalid_key", ""},
		"body too large": {core.ErrBodyTooLarge, 413, "body_too_large", ""},
		"upgrade":        {&core.Error{Kind: core.ErrUpgrade}, 500, "upgrade", ""},
		"hidden lease":   {&core.Error{Kind: core.ErrHiddenLease}, 500, "hidden_lease", ""},
		"mismatch":       {core.ErrMismatch, 422, "mismatch", ""},
		"interrupted":    {core.ErrOutcomeUnknown, 409, "outcome_unknown", ""},
		"unreplayable":   {core.ErrUnreplayable, 409, "completed_unreplayable", ""},
		"not found":      {core.ErrNotFound, 404, "not_found", ""},
		"changed":        {core.ErrChanged, 409, "changed", ""},
		"unavailable":    {&core.Error{Kind: core.ErrUnavailable, Cause: errors.New("secret")}, 503, "unavailable", "1"},
		"closing":        {&core.Error{Kind: core.ErrClosed}, 503, "closing", "1"},
		"another error":  {errors.New("secret"), 500, "internal", ""},
		"no error":       {nil, 500, "internal", ""},

		"shortest retry":   {&core.Error{Kind: core.ErrBusy, RetryAfter: 1}, 409, "busy", "1"},
		"a whole second":   {&core.Error{Kind: core.ErrBusy, RetryAfter: time.Second}, 409, "busy", "1"},
		"rounded up retry": {&core.Error{Kind: core.ErrBusy, RetryAfter: time.Second + 1}, 409, "busy", "2"},
		"longest retry":    {&core.Error{Kind: core.ErrBusy, RetryAfter: math.MaxInt64}, 409, "busy", "9223372037"},
		"long retry":       {&core.Error{Kind: core.ErrBusy, RetryAfter: time.Minute}, 409, "busy", "60"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			WriteRefusal(w, test.err)
			if w.Code != test.status || w.Header().Get("Retry-After") != test.retryAfter {
				t.Errorf("status %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
			}
			if w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("header %v", w.Header())
			}
			var problem struct {
				Type, Title, Detail, Code string
				Status                    int
			}
			if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil {
				t.Fatal(err)
			}
			if problem.Type != "about:blank" || problem.Title != http.StatusText(test.status) ||
				problem.Status != test.status || problem.Code != test.code || problem.Detail == "" {
				t.Errorf("problem %+v", problem)
			}
			if strings.Contains(w.Body.String(), "secret") {
				t.Errorf("the answer contains the error: %s", w.Body)
			}
		})
	}
}

// Headers that a middleware set for another answer are removed. Content-Encoding stays,
// because it describes how the answer will be encoded.
func TestWriteRemovesHeaders(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	for _, name := range []string{"Content-Length", "Etag", "Last-Modified", "Content-Encoding", "X-Request-Id"} {
		w.Header().Set(name, "7")
	}
	WriteRefusal(w, core.ErrBusy)
	for name, want := range map[string]string{
		"Content-Length": "", "Etag": "", "Last-Modified": "", "Content-Encoding": "7", "X-Request-Id": "7",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// An answer without a body has no Content-Type.
func TestWriteRemovesTypeWithoutBody(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := locktest.New(t).Lock(gone, "key")
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "text/html")
	WriteRefusal(w, err)
	if got := w.Header().Get("Content-Type"); got != "" || w.Body.Len() != 0 {
		t.Errorf("Content-Type %q, %d bytes", got, w.Body.Len())
	}
}

// The answer names the part of the request that the client has to mend, without its value, and says
// what the part is for.
func TestWriteNamesThePartOfTheRequest(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for kind, want := range map[error][2]string{
		core.ErrNoKey: {
			`The request lacks the header "X-Account", by which it is locked.`,
			`The request lacks the header "X-Account", by which the server recognizes a retry.`,
		},
		core.ErrInvalidKey: {
			`A part of the request, by which it is locked, is malformed, too long or given twice: the header "X-Account".`,
			`A part of the request, by which the server recognizes a retry, is malformed, too long or given twice: the header "X-Account".`,
		},
		errors.New("secret"): {"The lock for the request could not be determined.", "It could not be determined whether the request is a retry."},
	} {
		fails := func(string) (string, error) { return "", fmt.Errorf("%w: secret", kind) }
		key := bind(locks, core.KeyOf(fails).Describe(`Header("X-Account")`, `the header "X-Account"`), false)
		_, _, locked := key.Enter(t.Context(), "", nil)
		_, once := key.ReadOne(t.Context(), "", "")
		for i, err := range []error{locked, once, key.Refuse(t.Context(), bridge.RequestKey{}, bridge.DescribeError(kind, "WithFingerprint()", ""))} {
			w := httptest.NewRecorder()
			WriteRefusal(w, err)
			var problem struct{ Detail string }
			if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || i < 2 && problem.Detail != want[i] || strings.Contains(problem.Detail, "lock") != (i == 0) {
				t.Errorf("%v, %q, want %q", err, problem.Detail, want[i%2])
			}
		}
	}
}

// The answer to a body that is too large names the limit.
func TestWriteNamesTheLimitOfABody(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	WriteRefusal(w, InContext(t.Context(), limitedError(5)))
	if want := `"detail":"The request body is larger than 5 bytes."`; w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), want) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A limitedError is a body that is too large, with its limit.
type limitedError int64

func (limitedError) Error() string    { return "too large" }
func (limitedError) Unwrap() error    { return core.ErrBodyTooLarge }
func (e limitedError) MaxBody() int64 { return int64(e) }

// The reference of the first request may be a text of a client. It is one member of the document.
func TestProblemQuotesFirst(t *testing.T) {
	t.Parallel()
	const first = `1","code":"paid","x":"</script>`
	body := Problem(core.Refusal{Code: "busy", HTTP: 409, Detail: "busy", First: first})
	var members map[string]any
	if err := json.Unmarshal(body, &members); err != nil || members["first"] != first || members["code"] != "busy" || members["x"] != nil {
		t.Errorf("%s, %v", body, err)
	}
	if strings.Contains(string(body), "</script>") || strings.Count(string(body), "\n") != 1 {
		t.Errorf("%s", body)
	}
	if body := string(Problem(core.Refusal{Code: "busy", HTTP: 409, Detail: "busy"})); strings.Contains(body, "first") {
		t.Error(body)
	}
}
