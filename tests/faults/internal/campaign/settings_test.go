package campaign

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
)

func TestParse(t *testing.T) {
	all := fault.Deployments()
	for line, want := range map[string]Settings{
		"":                              {Mode: ByName, On: all, Count: 1, Parallel: 3, For: 8 * time.Hour, Out: "out"},
		"-short":                        {Mode: Short, On: all, Count: 1, Parallel: 3, For: 8 * time.Hour, Out: "out"},
		"-long -for 3m -out /o":         {Mode: Long, On: all, Count: 1, Parallel: 3, For: 3 * time.Minute, Out: "/o"},
		"-validate h.json":              {Mode: Validate, On: all, Count: 1, Parallel: 3, For: 8 * time.Hour, Out: "out", History: "h.json"},
		"-on cluster -count 3":          {Mode: ByName, On: []fault.Deployment{fault.OnCluster}, Count: 3, Parallel: 3, For: 8 * time.Hour, Out: "out"},
		"-on sentinels -parallel 1":     {Mode: ByName, On: []fault.Deployment{fault.OnSentinels}, Count: 1, Parallel: 1, For: 8 * time.Hour, Out: "out"},
		"-on quorum":                    {Mode: ByName, On: []fault.Deployment{fault.OnQuorum}, Count: 1, Parallel: 3, For: 8 * time.Hour, Out: "out"},
		"-on cluster-replicas":          {Mode: ByName, On: []fault.Deployment{fault.OnClusterReplicas}, Count: 1, Parallel: 3, For: 8 * time.Hour, Out: "out"},
		"-run ^kill -on server -seed 7": {Mode: ByName, On: []fault.Deployment{fault.OnServer}, Seed: 7, Seeded: true, Count: 1, Parallel: 3, For: 8 * time.Hour, Out: "out"},
		"-short -seed 0":                {Mode: Short, On: all, Seeded: true, Count: 1, Parallel: 3, For: 8 * time.Hour, Out: "out"},
		"-seed 18446744073709551615":    {Mode: ByName, On: all, Seed: 1<<64 - 1, Seeded: true, Count: 1, Parallel: 3, For: 8 * time.Hour, Out: "out"},
	} {
		t.Run(line, func(t *testing.T) {
			var output bytes.Buffer
			got, err := Parse(&output, strings.Fields(line))
			if err != nil {
				t.Fatal(err)
			}
			got.Names = nil // a pattern: TestParseNames checks it
			if !got.Seeded {
				got.Seed = 0 // random
			}
			if !slices.Equal(got.On, want.On) {
				t.Errorf("on %v, want %v", got.On, want.On)
			}
			got.On, want.On = nil, nil
			if got.Mode != want.Mode || got.Seed != want.Seed || got.Seeded != want.Seeded || got.Count != want.Count ||
				got.For != want.For || got.Parallel != want.Parallel || got.Out != want.Out || got.History != want.History {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestParseNames(t *testing.T) {
	for line, want := range map[string]string{
		"-run ^kill$": "^kill$", "-short -run stop": "stop", "": "",
	} {
		got, err := Parse(&bytes.Buffer{}, strings.Fields(line))
		if err != nil || got.Names.String() != want {
			t.Errorf("%q: got %q, %v; want %q", line, got.Names, err, want)
		}
	}
}

func TestBadUsageIsReported(t *testing.T) {
	for line, says := range map[string]string{
		"-short -long":      "one at a time",
		"-long -validate f": "one at a time",
		"-run (":            "missing closing",
		"-short a":          "too much",
		"-on moon":          "the names are server, sentinels, cluster, quorum, sentinels-replicas and cluster-replicas",
		"-count 0":          "-count",
		"-parallel 0":       "-parallel",
		"-long -for 0s":     "-for",
		"-colour":           "not defined",
		"-seed -1":          "invalid",
	} {
		t.Run(line, func(t *testing.T) {
			var output bytes.Buffer
			if _, err := Parse(&output, strings.Fields(line)); err == nil || !strings.Contains(output.String(), says) {
				t.Errorf("error %v, said %q", err, output.String())
			}
			if code := Main(t.Context(), &bytes.Buffer{}, strings.Fields(line)); code != exitUsage {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	var output bytes.Buffer
	if _, err := Parse(&output, []string{"-h"}); !errors.Is(err, flag.ErrHelp) || !strings.Contains(output.String(), "Usage") {
		t.Errorf("error %v, said %q", err, output.String())
	}
	if code := Main(t.Context(), &output, []string{"-h"}); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestEachRunHasASeedOfItsOwnUnlessOneIsGiven(t *testing.T) {
	first, _ := Parse(&bytes.Buffer{}, nil)
	for range 10 { // ten equal seeds of 2^32 are no accident
		if again, _ := Parse(&bytes.Buffer{}, nil); again.Seed != first.Seed {
			return
		}
	}
	t.Error("the seed is always the same")
}
