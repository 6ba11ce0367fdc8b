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
	decision core.Decision
	// answer answers with a status; nil: it writes the status and a text.
	answer func(t invocation, status int)
	next   map[int]error
}

// statusScenarios test which answers are stored. internal/adapter/record has a table of all
// statuses, and internal/adapter/httpattempt one of all endings.
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
		uncertain[status], freed[status] = core.ErrInterrupted, errRuns
	}
	fail := func(t invocation, status int) { t.fail(status) }
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
			next: map[int]error{201: errReplays, 500: errReplays, 503: errReplays, 409: core.ErrInterrupted},
		},
		{
			name: "statuses by an option of the application",
			own:  ownOptions{stored: func(status int) bool { return status == http.StatusTeapot || status/100 == 5 }},
			next: map[int]error{201: errRuns, 418: errReplays, 503: errReplays, 500: errReplays},
		},
		{
			name: "an error in the framework's own way", answer: fail,
			next: map[int]error{503: errRuns, 422: errReplays, 502: core.ErrInterrupted},
		},
		{
			name: "a status without a body, in the framework's own way", answer: bare,
			next: map[int]error{503: errRuns, 202: errReplays},
		},
		{name: "the handler decides: store", decision: core.StoreAnswer, next: map[int]error{500: errReplays}},
		{name: "the handler decides: drop", decision: core.DropAnswer, next: map[int]error{201: errRuns}},
		{name: "the handler decides: uncertain", decision: core.Uncertain, next: map[int]error{201: core.ErrInterrupted, 504: core.ErrInterrupted}},
		{
			name: "the handler decides: uncertain, with Rerun", decision: core.Uncertain,
			options: []core.Option{core.WithInterrupted(core.Rerun)}, next: map[int]error{504: errRuns},
		},
		{name: "the handler decides: no effect", decision: core.NoEffect, next: map[int]error{500: errRuns, 201: errReplays}},
	}
}

func (row statusRow) run(e *environment) {
	var status int
	s := e.serveEndpoint(endpoint{own: row.own, options: row.options, handler: func(t invocation) {
		if row.decision != core.NoEffect { // which does not take an Uncertain back
			t.attempt.Decide(core.Uncertain)
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
		t.attempt.Decide(core.Uncertain)
		t.WriteHeader(http.StatusGatewayTimeout)
	}}
}
