package main

import (
	"encoding/json"
	"testing"
	"time"
)

func TestSpansAreShort(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": 0, "7ms": 7*time.Millisecond + 400, "8.3s": 8399 * time.Millisecond, "1m5s": 65*time.Second + 4, "3h2m": 3*time.Hour + 2*time.Minute + time.Second,
		"2d3h": 51*time.Hour + time.Minute, "-": -time.Millisecond,
	} {
		if got := span(d).String(); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
	for want, d := range map[string]time.Duration{"1500": 1500*time.Millisecond + 9, "-1": -1, "0": 0} {
		if got := must(json.Marshal(span(d)))(t); string(got) != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
