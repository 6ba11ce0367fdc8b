package load

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
)

// A request is a request of a client.
type request struct {
	name    string
	url     string
	once    string        // its idempotency key, or ""
	wait    time.Duration // it must not be refused earlier, unless Redis is unavailable
	started chan struct{} // closed when all requests may be sent
}

// An answer is the response to a request.
type answer struct {
	request  *request
	at       time.Time
	status   int
	code     string // the code of the problem, if the handler did not run
	retry    bool   // it has Retry-After
	body     string
	replayed bool
	err      error
}

// An outcome is the response to a request whose handler did not run.
type outcome struct {
	status int
	retry  bool
}

// outcomes are those that many requests and a dead Redis can cause, as in the README.
var outcomes = map[string]outcome{
	"busy":            {http.StatusConflict, true},
	"wait_timeout":    {http.StatusConflict, true},
	"queue_full":      {http.StatusTooManyRequests, true},
	"overloaded":      {http.StatusServiceUnavailable, true},
	"unavailable":     {http.StatusServiceUnavailable, true},
	"outcome_unknown": {http.StatusConflict, false},
}

func (r *request) send(client *http.Client) answer {
	a := answer{request: r}
	a.err = a.get(client)
	a.at = time.Now()
	return a
}

func (a *answer) get(client *http.Client) error {
	req, err := http.NewRequest(http.MethodPost, a.request.url, http.NoBody) //nolint:noctx // a client that waits for its answer, whatever comes
	if err != nil {
		return err
	}
	req.Header.Set("Request", a.request.name)
	if a.request.once != "" {
		req.Header.Set("Idempotency-Key", a.request.once)
	}
	<-a.request.started
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	a.status, a.body = res.StatusCode, string(body)
	a.retry, a.replayed = res.Header.Get("Retry-After") != "", res.Header.Get("Idempotent-Replayed") == "true"
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "application/problem+json" {
		var problem struct {
			Status int
			Code   string
		}
		if err := json.Unmarshal(body, &problem); err != nil {
			return err
		}
		if problem.Status != a.status {
			return fmt.Errorf("status %d in an answer of %d", problem.Status, a.status)
		}
		a.code = problem.Code
	}
	return err
}

// kind returns the kind of the answer for the table.
func (a *answer) kind() string {
	switch {
	case a.err != nil:
		return "no answer"
	case a.code != "":
		return fmt.Sprintf("%d %s", a.status, a.code)
	case a.replayed:
		return fmt.Sprintf("%d replayed", a.status)
	}
	return fmt.Sprint(a.status)
}

// Facts are what is known about a run when its answers are checked.
type facts struct {
	byName       map[string]*request // by name
	gateOpened   time.Time           // when the gate was opened
	ran          map[string]int      // the number of runs of each request's handler
	lostAttempts map[string]bool     // requests that stopped waiting because their attempt lost its lease
}

// fault describes what is wrong with the answer, or returns "".
func (a *answer) fault(s *facts) string {
	switch {
	case a.err != nil:
		return "no answer: " + a.err.Error()
	case a.code != "":
		row, known := outcomes[a.code]
		switch {
		case !known || row.status != a.status || row.retry != a.retry:
			return "no row of the table"
		case a.code == "outcome_unknown" && a.request.once == "":
			return "an outcome of idempotent requests"
		case s.ran[a.request.name] > 0:
			return "a refusal of a request that ran"
		case a.code != "outcome_unknown" && a.at.Sub(s.gateOpened) < a.request.wait && !s.lostAttempts[a.request.name]:
			return "a refusal before the wait was over"
		}
	case a.status != http.StatusOK:
		return "neither a success nor a problem"
	case s.ran[a.body] == 0:
		return "a success without a run of its handler"
	case a.replayed:
		if first := s.byName[a.body]; a.request.once == "" || first.once != a.request.once {
			return "a replay of another request"
		}
	case a.body != a.request.name:
		return "a success of another request"
	}
	return ""
}
