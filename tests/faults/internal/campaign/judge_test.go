package campaign

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/check"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// quiet is a run in which nothing is broken.
func quiet() Run {
	return Run{Fault: fault.Fault{Name: "nothing", Play: func(*fault.Scene) {}}, On: fault.OnServer, Seed: 1}
}

// A kept history must be found guilty of the same when it is judged again. This one
// is a true one, with a grant in it that nobody was given.
func TestAKeptHistoryIsJudgedTheSameAgain(t *testing.T) {
	r := play(t.Context(), quiet())
	if r.Skipped {
		t.Skip(r.Log)
	}
	if r.Failed {
		t.Fatal(r.Log)
	}
	forge(r.History)
	r.Findings = check.All(r.History)
	if len(r.Findings) == 0 {
		t.Fatal("the checks do not see two holders")
	}
	dir, err := r.keep(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	code := Main(t.Context(), &said, []string{"-judge", filepath.Join(dir, historyFile)})
	_, findings, _ := strings.Cut(said.String(), "\n")
	kept, err := os.ReadFile(filepath.Join(dir, FindingsFile))
	if err != nil || code != found {
		t.Errorf("exit code %d, %v", code, err)
	}
	before, after := verdicts(string(kept)), verdicts(findings)
	for i := range max(len(before), len(after)) {
		if i >= min(len(before), len(after)) || before[i] != after[i] {
			t.Fatalf("of %d findings, and then %d, these differ:\n%s\n%s", len(before), len(after), before[min(i, len(before)-1)], after[min(i, len(after)-1)])
		}
	}
}

// verdicts returns the findings line by line, without what is an example: of several
// calls that do not fit, Porcupine may name another one each time.
func verdicts(findings string) []string {
	lines := strings.Split(findings, "\n")
	for i := range lines {
		lines[i], _, _ = strings.Cut(lines[i], "; the first that does not fit")
	}
	return lines
}

// forge adds a lease that was granted, and given back, while another held the key.
func forge(h *history.History) {
	for _, op := range h.Ops {
		if op.Kind != history.Lock || op.Outcome != history.Granted {
			continue
		}
		twin := op
		twin.Client, twin.Lease, twin.Episode, twin.Call = 99, "forged", "forged", op.Return
		twin.Return++
		end := twin
		end.Kind, end.Outcome = history.Release, history.Done
		end.Call, end.Return, end.Believed = twin.Return+1, twin.Return+2, twin.Return+1
		h.Ops = append(h.Ops, twin, end)
		return
	}
}

func TestWhatIsNoHistoryIsNotJudged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, path + ".not"} {
		if code := Main(t.Context(), &bytes.Buffer{}, []string{"-judge", path}); code != misused {
			t.Errorf("exit code %d", code)
		}
	}
}

func TestARunOfAFaultThatFailsIsJudgedAllTheSame(t *testing.T) {
	run := quiet()
	run.Fault.Play = func(s *fault.Scene) { s.Fatal("it does not work") }
	r := play(t.Context(), run)
	if r.Skipped {
		t.Skip(r.Log)
	}
	if !r.Failed || !strings.Contains(r.Log, "it does not work") || r.History == nil || r.History.Calm != r.History.Begun {
		t.Errorf("failed %v, log %q, history %v", r.Failed, r.Log, r.History != nil)
	}
	if len(r.ServerLogs) != 1 {
		t.Errorf("%d logs of servers", len(r.ServerLogs))
	}
}

func TestAnInterruptedRunEnds(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	run := quiet()
	run.Fault.Play = func(s *fault.Scene) {
		s.Crew.AwaitGrants(1)
		interrupt()
		s.Crew.AwaitGrants(1 << 20)
	}
	if r := play(ctx, run); r.History != nil {
		t.Error("it has a history")
	}
}
