package campaign

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
)

// count returns the number of runs of each fault on each deployment.
func count(runs []Run) map[string]map[fault.Deployment]int {
	n := make(map[string]map[fault.Deployment]int)
	for _, r := range runs {
		if n[r.Fault.Name] == nil {
			n[r.Fault.Name] = make(map[fault.Deployment]int)
		}
		n[r.Fault.Name][r.On]++
	}
	return n
}

func TestAPlanPlaysEachFaultWhereItCanHappen(t *testing.T) {
	faults := fault.All()
	runs := count(allRuns(faults, fault.Deployments(), 1, 2))
	for _, f := range faults {
		for _, kind := range fault.Deployments() {
			want := 0
			if slices.Contains(f.On, kind) {
				want = 2
			}
			if got := runs[f.Name][kind]; got != want {
				t.Errorf("%s is executed %d times on %s, not %d", f.Name, got, kind.String(), want)
			}
		}
	}
}

func TestTheShortPlanPlaysEachFaultOfAServerAndSomeOfTheOthers(t *testing.T) {
	faults := fault.All()
	runs := shortPlan(faults, fault.Deployments(), 9)
	sums := make(map[fault.Deployment]int)
	for _, r := range runs {
		sums[r.On]++
		if !slices.Contains(r.Fault.On, r.On) {
			t.Errorf("%s cannot happen on %s", r.Fault.Name, r.On.String())
		}
	}
	if sums[fault.OnServer] < shortOnServer || sums[fault.OnSentinels] != shortOnSentinels || sums[fault.OnCluster] != shortOnCluster ||
		sums[fault.OnQuorum] != shortOnQuorum || sums[fault.OnSentinelsReplicas] != shortOnReplicas || sums[fault.OnClusterReplicas] != shortOnReplicas {
		t.Errorf("got %v", sums)
	}
	executed := count(runs)
	for _, f := range faults {
		if slices.Contains(f.On, fault.OnServer) && executed[f.Name][fault.OnServer] == 0 {
			t.Errorf("%s is not executed on a server alone", f.Name)
		}
	}
}

// three returns three faults. The first can happen to any deployment.
func three() []fault.Fault {
	return []fault.Fault{
		{Name: "a", On: fault.Deployments()},
		{Name: "b", On: []fault.Deployment{fault.OnServer, fault.OnCluster}},
		{Name: "c", On: []fault.Deployment{fault.OnCluster}},
	}
}

func TestEachRoundHasTheNextSeed(t *testing.T) {
	var got []string
	for _, r := range allRuns(three(), []fault.Deployment{fault.OnServer, fault.OnSentinels}, 5, 6) {
		got = append(got, r.Name())
	}
	want := []string{"a-server-5", "b-server-5", "a-server-6", "b-server-6", "a-sentinels-5", "a-sentinels-6"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRareFaultsComeFirst(t *testing.T) {
	for seed := range uint64(4) {
		var got []string
		for _, f := range rarestFirst(three(), seed) {
			got = append(got, f.Name)
		}
		if !slices.Equal(got, []string{"c", "b", "a"}) {
			t.Errorf("seed %d: got %v", seed, got)
		}
	}
}

func TestNamesChooseFaults(t *testing.T) {
	got := named(three(), regexp.MustCompile("^[ac]$"))
	if len(got) != 2 || got[0].Name != "a" || got[1].Name != "c" {
		t.Errorf("got %v", got)
	}
}

func TestARunSaysHowToPlayItAgain(t *testing.T) {
	r := Run{Fault: three()[1], On: fault.OnCluster, Seed: 77}
	for _, out := range []string{"out", "/kept", "a place of ours"} {
		args := shellArgs(t, strings.TrimPrefix(r.Command(out), "go run . "))
		s, err := Parse(&strings.Builder{}, args)
		if err != nil {
			t.Fatal(err)
		}
		if again := s.plan(three()); len(again) != 1 || again[0].Name() != r.Name() || s.Out != out {
			t.Errorf("%s runs %v, and keeps in %s", r.Command(out), again, s.Out)
		}
	}
}
