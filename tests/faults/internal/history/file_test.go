package history_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestAHistoryIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.json")
	want := &history.History{
		Name: "a },{ in a name", Deployment: "standalone", Seed: 1 << 63, TTL: 1, Claim: 2, CommandTimeout: 6, FailFast: 7, Begun: 3, Ended: 4, Recovered: 5, Careless: true,
		Ops: []history.Op{
			{Process: 1, Client: 2, Kind: history.Lock, Call: 3, Return: 4, Key: "k", Outcome: history.Granted, Lease: "l", Episode: "e", Fence: 1 << 53, ValidUntil: 9, Unrenewed: true, MinHold: 8, Limit: history.Unlimited},
			{Kind: history.Begin, Call: 5, Key: "},{", Number: 2, Record: "r", Policy: history.Rerun, Other: true},
		},
		Accesses:        []history.Access{{At: 1, Key: "k", Fenced: true, Write: true, Fence: 2, Version: 3, Refused: true}},
		Effects:         []history.Effect{{At: 1, Key: "pay-1", Number: 1, Lease: "l"}},
		Disruptions:     []history.Disruption{{Name: "t", From: 1, To: 2, Loss: true}},
		ProcessFailures: []history.ProcessFailure{{Process: 1, From: 2, To: 3}},
		Lags:            []history.Lag{{Process: 1, From: 4, To: 5}},
		FastLeases:      []history.FastLease{{Process: 1, Client: 2, Call: 3, Return: 4, Fence: 1 << 53, Key: "k"}, {Key: "l"}},
		Sizes:           []history.Size{{Process: 1, Goroutines: 2, At: 3}},
		AheadCounters:   []history.AheadCounter{{Key: "k", At: 1, By: 2}},
	}
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := history.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestInvalidHistoryIsRefused(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "EOF"},
		{"another field", `{"name":"x","colour":"red"}`, "colour"},
		{"a draw without a key", `{"fast_leases":["1 2 3 4 5"]}`, "EOF"},
		{"cut", `{"name":"x","ops":[{"process":1`, "EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history.json")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := history.Load(path); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v; want one with %q", err, test.want)
			}
		})
	}
	if _, err := history.Load(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was read")
	}
}
