package campaign

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// fakeCampaign returns a campaign whose runs are replaced by a function.
func fakeCampaign(t *testing.T, parallel int, execute func(Run) *Report) (*campaign, *bytes.Buffer) {
	t.Helper()
	output := &bytes.Buffer{}
	return &campaign{
		settings: Settings{Parallel: parallel, Out: t.TempDir()}, w: output, table: Table{},
		runOne: func(_ context.Context, r Run) *Report {
			report := execute(r)
			report.Run = r
			return report
		},
	}, output
}

func always() bool { return true }

func TestCampaignExecutesAllRuns(t *testing.T) {
	var mu sync.Mutex
	var executed []string
	c, output := fakeCampaign(t, 3, func(r Run) *Report {
		mu.Lock()
		defer mu.Unlock()
		executed = append(executed, r.Name())
		return &Report{History: &history.History{}}
	})
	c.run(t.Context(), allRuns(three(), fault.Deployments(), 1, 2), always)
	slices.Sort(executed)
	want := []string{
		"a-cluster-1", "a-cluster-2", "a-cluster-replicas-1", "a-cluster-replicas-2", "a-quorum-1", "a-quorum-2",
		"a-sentinels-1", "a-sentinels-2", "a-sentinels-replicas-1", "a-sentinels-replicas-2", "a-server-1", "a-server-2",
		"b-cluster-1", "b-cluster-2", "b-server-1", "b-server-2", "c-cluster-1", "c-cluster-2",
	}
	if !slices.Equal(executed, want) {
		t.Errorf("got %v", executed)
	}
	if c.failed || strings.Count(output.String(), "\n") != len(want) {
		t.Errorf("bad %v, said\n%s", c.failed, output)
	}
}

func TestAtMostTwoRunsOnSeveralServersAtATime(t *testing.T) {
	for _, c := range []struct {
		on   fault.Deployment
		side int
	}{{fault.OnServer, 3}, {fault.OnCluster, 2}} {
		met := make(chan struct{}) // closed when as many runs as expected have started
		var mu sync.Mutex
		came, now, most := 0, 0, 0
		campaign, _ := fakeCampaign(t, 3, func(Run) *Report {
			mu.Lock()
			came++
			now++
			most = max(most, now)
			if came == c.side {
				close(met)
			}
			mu.Unlock()
			<-met
			mu.Lock()
			defer mu.Unlock()
			now--
			return &Report{}
		})
		campaign.run(t.Context(), allRuns(three()[:1], []fault.Deployment{c.on}, 1, 2, 3, 4, 5, 6), always)
		if most != c.side {
			t.Errorf("%d runs side by side on %s, not %d", most, c.on.String(), c.side)
		}
	}
}

// A run takes as many seconds of the bubble's clock as its seed says, so some still go on when a
// worker has nothing left to do.
func TestRunsOnAQuorumAreExecutedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, onQuorum, quorums := 0, 0, 0
		c, _ := fakeCampaign(t, 3, func(r Run) *Report {
			enter := func(by int) {
				mu.Lock()
				defer mu.Unlock()
				now += by
				if r.On == fault.OnQuorum {
					onQuorum += by
					quorums += max(by, 0)
				}
				if onQuorum > 0 && now > 1 {
					t.Errorf("%d runs at a time, %d of them on a quorum", now, onQuorum)
				}
			}
			enter(1)
			defer enter(-1)
			time.Sleep(time.Duration(r.Seed) * time.Second)
			return &Report{}
		})
		c.run(t.Context(), allRuns(three()[:1], fault.Deployments(), 1, 2, 7), always)
		if quorums != 3 {
			t.Errorf("%d runs on a quorum", quorums)
		}
	})
}

func TestACampaignEndsWhenItsTimeIsOver(t *testing.T) {
	for _, test := range []struct {
		on    []fault.Deployment
		first fault.Deployment
	}{
		{fault.Deployments(), fault.OnQuorum},
		{[]fault.Deployment{fault.OnServer}, fault.OnServer},
	} {
		executed := 0
		c, _ := fakeCampaign(t, 1, func(Run) *Report {
			executed++
			return &Report{History: &history.History{}}
		})
		c.run(t.Context(), allRuns(three(), test.on, 1, 2, 3, 4), func() bool { return executed < 3 })
		if n := c.table[test.first].Histories; executed != 3 || n != 3 {
			t.Errorf("%d runs, %d recorded on %s", executed, n, test.first.String())
		}
	}
}

func TestInterruptedRunIsIgnored(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	c, output := fakeCampaign(t, 1, func(Run) *Report {
		interrupt()
		return &Report{Failed: true}
	})
	c.run(ctx, allRuns(three(), fault.Deployments(), 1), always)
	if c.failed || output.Len() != 0 || len(c.table) != 0 {
		t.Errorf("bad %v, said %q", c.failed, output)
	}
}

func TestFailureIsKept(t *testing.T) {
	h := &history.History{Name: "a", TTL: 1, Ended: 1}
	c, output := fakeCampaign(t, 1, func(Run) *Report {
		return &Report{
			History: h, Log: "the log\n", ServerLogs: map[string][]byte{"server-001.log": []byte("quiet")},
			Violations: []validate.Violation{{Check: "first", Text: "two\nlines"}, {
				Check: "second", Text: "drawn", Picture: func(path string) error { return os.WriteFile(path, []byte("a picture"), 0o600) },
			}},
		}
	})
	run := allRuns(three()[:1], []fault.Deployment{fault.OnServer}, 5)
	c.run(t.Context(), run, always)
	dir := filepath.Join(c.settings.Out, "a-server-5")
	for name, want := range map[string]string{
		ViolationsFile: "first: two lines\nsecond: drawn\n", "run.log": "the log\n", "server-001.log": "quiet", "2-second.html": "a picture",
	} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != want {
			t.Errorf("%s has %q, %v", name, text, err)
		}
	}
	if kept, err := history.Load(filepath.Join(dir, historyFile)); err != nil || kept.Name != "a" {
		t.Errorf("the history is %+v, %v", kept, err)
	}
	for _, want := range []string{"first: two lines", run[0].Command(c.settings.Out), "-validate " + filepath.Join(dir, historyFile)} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, output)
		}
	}
	if !c.failed {
		t.Error("the campaign is not bad")
	}
}

func TestFailedRunIsKeptWithoutHistory(t *testing.T) {
	c, output := fakeCampaign(t, 1, func(Run) *Report { return &Report{Failed: true, Log: "no port\n"} })
	c.run(t.Context(), allRuns(three()[:1], []fault.Deployment{fault.OnServer}, 5), always)
	if !c.failed || !strings.Contains(output.String(), "no port") || strings.Contains(output.String(), "-validate") {
		t.Errorf("bad %v, said\n%s", c.failed, output)
	}
	if _, err := os.Stat(filepath.Join(c.settings.Out, "a-server-5", "run.log")); err != nil {
		t.Error(err)
	}
}

func TestTheControlMustLoseUpdates(t *testing.T) {
	write := func(version int64) history.Access { return history.Access{Key: "k", Write: true, Version: version} }
	fenced := func(version int64) history.Access {
		return history.Access{Key: "k", Fenced: true, Write: true, Version: version}
	}
	for name, c := range map[string]struct {
		accesses []history.Access
		says     string
		runs     int
	}{
		"an update is lost":               {[]history.Access{write(0), write(0)}, "", 1},
		"none is":                         {[]history.Access{write(0), write(1)}, "would not see", controlRuns},
		"one is lost in spite of a fence": {[]history.Access{write(0), write(0), fenced(0), fenced(0)}, "not what was found", 1},
	} {
		t.Run(name, func(t *testing.T) {
			executed := 0
			campaign, _ := fakeCampaign(t, 1, func(r Run) *Report {
				executed++
				if !r.Careless {
					t.Error("the clients are careful")
				}
				h := &history.History{Accesses: c.accesses, Careless: true, TTL: 1, Ended: 1}
				return &Report{History: h, Violations: validate.All(h)}
			})
			err := campaign.control(t.Context())
			if c.says == "" {
				if err != nil || executed != c.runs {
					t.Errorf("%v after %d runs", err, executed)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.says) || executed != c.runs {
				t.Errorf("%v after %d runs", err, executed)
			}
		})
	}
}
