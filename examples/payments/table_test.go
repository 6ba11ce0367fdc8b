package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	t.Parallel()
	const want = `
   sent             expected         happened            time
── Gin on here ──────────────────────────────────────────────
✓  2 transfers      1 done, 1 × 409  1 done, 1 × 409     7 ms
✗  an order, ann’s  1 done           0 done           1234 ms
── gRPC on there ────────────────────────────────────────────
✗  another          1 done           0 done; no line    12 ms
✗  nothing          1 done           no line             0 ms
─────────────────────────────────────────────────────────────
3 of 4 went wrong.
`
	scenarios := []scenario{
		{Sent: "2 transfers", Expected: "1 done, 1 × 409"},
		{Sent: "an order, ann’s", Expected: "1 done"},
		{Sent: "another", Expected: "1 done"},
		{Sent: "nothing", Expected: "1 done"},
	}
	broken := errors.New("no line")
	var out strings.Builder
	table := newTable(&out, scenarios)
	table.block("Gin on here")
	table.add(result{scenario: scenarios[0], outcome: outcome{"1 done, 1 × 409", true}, Took: 7 * time.Millisecond})
	table.add(result{scenario: scenarios[1], outcome: outcome{"0 done", false}, Took: 1234 * time.Millisecond})
	table.block("gRPC on there")
	table.add(result{scenario: scenarios[2], outcome: outcome{"0 done", true}, Err: broken, Took: 12 * time.Millisecond})
	table.add(result{scenario: scenarios[3], Err: broken})
	if table.end() {
		t.Error("a table with crosses is right")
	}
	if got := "\n" + out.String(); got != want {
		t.Errorf("%s\nnot%s", got, want)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	busy := answer{Busy: true, Status: "409", RetryAfter: time.Second, Retry: "Retry-After"}
	silent := answer{Busy: true, Status: "409"}
	tests := []struct {
		name    string
		answers []answer
		err     error
		want    string
	}{
		{"none", nil, nil, "0 done"},
		{"done", []answer{{Done: true, Status: "200"}, {Done: true, Status: "201"}}, nil, "2 done"},
		{"busy", []answer{busy, busy}, nil, "0 done, 2 × 409 + Retry-After"},
		{"one silent", []answer{busy, silent}, nil, "0 done, 1 × 409, 1 × 409 + Retry-After"},
		{"another", []answer{busy, {Status: "503"}, {Status: "400"}}, nil, "0 done, 1 × 400, 1 × 409 + Retry-After, 1 × 503"},
		{"unanswered", []answer{{Done: true}}, errors.New("gone"), "1 done, 1 without answer (gone)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newClientGroup(newMonitor())
			for _, a := range test.answers {
				c.count(a, nil)
			}
			if test.err != nil {
				c.count(answer{}, test.err)
			}
			if got := c.counts.String(); got != test.want {
				t.Errorf("%q, not %q", got, test.want)
			}
		})
	}
}
