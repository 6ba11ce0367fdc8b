package history_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestHistoryIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.json")
	want := &history.History{
		Name: "n", Deployment: "server", Seed: 1 << 63, TTL: 1, Claim: 2, CommandTimeout: 6, FailFast: 7, Begun: 3, Ended: 4, Recovered: 5, Careless: true,
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
	if got, err := history.Load(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

// A field that is not read could hide a violation.
func TestUnknownFieldIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.json")
	if err := os.WriteFile(path, []byte(`{"name":"x","colour":"red"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err := history.Load(path); err == nil {
		t.Errorf("read %+v", h)
	}
}
