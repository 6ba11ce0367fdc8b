package load

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A request is a request of a client, with its answer.
type request struct {
	name    string
	url     string
	payment string // its idempotency key, or ""
	wait    time.Duration

	after    time.Duration // when the answer came, from when the gate was opened
	status   int
	code     string // of the refusal, if the handler did not run
	retry    bool   // it has Retry-After
	replayed bool
	body     string
	err      error // there was no answer
}

// A refusal is the answer to a request whose handler did not run.
type refusal struct {
	status int
	retry  bool
}

// refusals are those that many requests and a dead Redis can cause, as in the README.
var refusals = map[string]refusal{
	"busy":            {http.StatusConflict, true},
	"wait_timeout":    {http.StatusConflict, true},
	"queue_full":      {http.StatusTooManyRequests, true},
	"overloaded":      {http.StatusServiceUnavailable, true},
	"unavailable":     {http.StatusServiceUnavailable, true},
	"outcome_unknown": {http.StatusConflict, false},
}

// send sends the request, and records its answer.
func (r *request) send(client *http.Client) error {
	sent, err := http.NewRequest(http.MethodPost, r.url, http.NoBody) //nolint:noctx // a client that waits for its answer, whatever comes
	if err != nil {
		return err
	}
	sent.Header.Set("Request", r.name)
	if r.payment != "" {
		sent.Header.Set("Idempotency-Key", r.payment)
	}
	got, err := client.Do(sent)
	if err != nil {
		return err
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	r.status, r.body = got.StatusCode, string(body)
	r.retry, r.replayed = got.Header.Get("Retry-After") != "", got.Header.Get("Idempotent-Replayed") == "true"
	if strings.HasPrefix(got.Header.Get("Content-Type"), "application/problem+json") {
		var problem struct{ Code string }
		err = errors.Join(err, json.Unmarshal(body, &problem))
		r.code = problem.Code
	}
	return err
}

// violation returns what is wrong with the answer, or "". Ran has the requests whose
// handlers ran, by name.
func (r *request) violation(ran map[string]*request) string {
	row, isKnown := refusals[r.code]
	switch {
	case r.err != nil:
		return "no answer: " + r.err.Error()
	case r.code == "" && r.status != http.StatusOK:
		return "neither a success nor a refusal"
	case r.code == "" && ran[r.body] == nil:
		return "a success without a run"
	case r.code == "" && r.replayed && (r.payment == "" || ran[r.body].payment != r.payment):
		return "a replay of another request"
	case r.code == "" && !r.replayed && r.body != r.name:
		return "a success of another request"
	case r.code == "":
		return ""
	case !isKnown || row.status != r.status || row.retry != r.retry:
		return "no refusal of the table"
	case r.code == "outcome_unknown" && r.payment == "":
		return "a refusal of idempotent requests"
	case ran[r.name] != nil:
		return "a refusal of a request that ran"
	case r.code != "outcome_unknown" && r.after < r.wait:
		return "a refusal before the wait was over"
	}
	return ""
}

func TestViolationsOfAnswersAreFound(t *testing.T) {
	t.Parallel()
	first := &request{name: "b", payment: "k"}
	ran := map[string]*request{"a": {name: "a"}, "b": first}
	for name, test := range map[string]struct {
		r    request
		want string
	}{
		"no answer":                    {request{name: "a", err: io.ErrUnexpectedEOF}, "no answer"},
		"an error without a code":      {request{name: "d", status: http.StatusInternalServerError}, "neither"},
		"a success without a run":      {request{name: "d", status: http.StatusOK, body: "d"}, "without a run"},
		"another's success":            {request{name: "d", status: http.StatusOK, body: "a"}, "success of another"},
		"a replay of another":          {request{name: "d", payment: "l", status: http.StatusOK, body: "b", replayed: true}, "replay of another"},
		"a replay under a lock":        {request{name: "a", status: http.StatusOK, body: "a", replayed: true}, "replay of another"},
		"an unknown code":              {request{name: "d", status: http.StatusConflict, code: "moon", retry: true}, "no refusal"},
		"a code with another status":   {request{name: "d", status: http.StatusInternalServerError, code: "busy", retry: true}, "no refusal"},
		"a refusal for good":           {request{name: "d", status: http.StatusConflict, code: "busy"}, "no refusal"},
		"an unknown outcome of a lock": {request{name: "d", status: http.StatusConflict, code: "outcome_unknown"}, "idempotent"},
		"a refusal of what ran":        {request{name: "a", status: http.StatusConflict, code: "busy", retry: true}, "that ran"},
		"a refusal too early":          {request{name: "d", wait: longWait, status: http.StatusConflict, code: "busy", retry: true}, "before the wait"},
	} {
		if found := test.r.violation(ran); !strings.Contains(found, test.want) {
			t.Errorf("%s: found %q, want %q", name, found, test.want)
		}
	}
}
