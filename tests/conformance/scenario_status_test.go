package conformance

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/reqlock/reqlock/core"
)

// What a copy gets, beside the errors of refusals.
var (
	errRuns    = errors.New("the copy runs")
	errReplays = errors.New("the copy gets the first answer")
)

// A statusRow are statuses with which a handler answers, and what a copy then gets.
type statusRow struct {
	name     string
	own      ownOptions
	options  []core.Option
	decision core.Ending
	// answer answers with a status; nil: it writes the status and a text.
	answer func(t invocation, status int)
	next   map[int]error
}

// statusScenarios test which answers are stored. internal/answer has a table of all
// statuses, and adapter one of all endings.
func statusScenarios() (cases []testCase) {
	for _, row := range statusRows() {
		cases = append(cases, testCase{row.name, everywhere, row.run})
	}
	return cases
}

func statusRows() []statusRow {
	uncertain := map[int]error{}
	freed := map[int]error{}
	for _, status := range []int{499, 500, 502, 504, 520, 600, 999} {
		uncertain[status], freed[status] = core.ErrOutcomeUnknown, errRuns
	}
	fail := func(t invocation, status int) { t.fail(status, nil) }
	bare := func(t invocation, status int) {
		t.Header().Set("Location", "/payments/1")
		t.bare(status)
	}
	return []statusRow{
		{name: "2xx, 3xx and most of 4xx are stored", next: map[int]error{
			200: errReplays, 201: errReplays, 299: errReplays, 303: errReplays, 400: errReplays, 404: errReplays, 422: errReplays, 451: errReplays,
		}},
		{name: "501, 503, 511, and refusals that can change, free the key", next: map[int]error{
			401: errRuns, 403: errRuns, 408: errRuns, 409: errRuns, 423: errRuns, 425: errRuns, 429: errRuns,
			501: errRuns, 503: errRuns, 511: errRuns,
		}},
		{name: "other failures and unknown statuses leave the outcome unknown", next: uncertain},
		{name: "other failures free the key, by an option", own: ownOptions{freeOnFailure: true}, next: freed},
		{
			name: "failures by an option of the application, which decides before WithStored",
			own: ownOptions{
				stored:    func(int) bool { return true },
				uncertain: func(f core.Failure) bool { return f.Status == http.StatusConflict || f.Status < http.StatusBadRequest },
			},
			next: map[int]error{201: errReplays, 500: errReplays, 503: errReplays, 409: core.ErrOutcomeUnknown},
		},
		{
			name: "statuses by an option of the application",
			own:  ownOptions{stored: func(status int) bool { return status == http.StatusTeapot || status/100 == 5 }},
			next: map[int]error{201: errRuns, 418: errReplays, 503: errReplays, 500: errReplays},
		},
		{
			name: "an error in the framework's own way", answer: fail,
			next: map[int]error{503: errRuns, 422: errReplays, 502: core.ErrOutcomeUnknown},
		},
		{
			name: "a status without a body, in the framework's own way", answer: bare,
			next: map[int]error{503: errRuns, 202: errReplays},
		},
		{name: "the handler decides: commit", decision: core.EndCommit, next: map[int]error{500: errReplays}},
		{name: "the handler decides: done", decision: core.EndDone, next: map[int]error{201: core.ErrUnreplayable, 500: core.ErrUnreplayable}},
		{name: "the handler decides: abort", decision: core.EndAbort, next: map[int]error{201: errRuns}},
		{name: "the handler decides: unknown", decision: core.EndUnknown, next: map[int]error{201: core.ErrOutcomeUnknown, 504: core.ErrOutcomeUnknown}},
		{
			name: "the handler decides: unknown, with WithRerunUnknown", decision: core.EndUnknown,
			options: []core.Option{core.WithRerunUnknown(true)}, next: map[int]error{504: errRuns},
		},
		{name: "the handler decides: no effect", decision: core.EndNoEffect, next: map[int]error{500: errRuns, 201: errReplays}},
	}
}

func (row statusRow) run(e *environment) {
	var status int
	s := e.serveEndpoint(endpoint{own: row.own, options: row.options, handler: func(t invocation) {
		if row.decision != core.EndNoEffect { // which does not take an EndUnknown back
			t.attempt.Decide(core.EndUnknown)
		}
		t.attempt.Decide(row.decision) // the last decision counts
		if row.answer != nil {
			row.answer(t, status)
			return
		}
		t.WriteHeader(status)
		_, _ = fmt.Fprint(t, "answered")
	}})
	for of, next := range row.next {
		status = of
		request := payment(fmt.Sprint(status))
		first := s.runsWith(status, request)
		switch {
		case errors.Is(next, errReplays):
			s.replays(first, request)
		case errors.Is(next, errRuns):
			s.runsWith(status, request)
		default:
			s.refuses(next, request)
		}
	}
}

// uncertainly returns an endpoint whose handler answers, and leaves the outcome unknown.
func uncertainly() endpoint {
	return endpoint{handler: func(t invocation) {
		t.attempt.Decide(core.EndUnknown)
		t.WriteHeader(http.StatusGatewayTimeout)
	}}
}
