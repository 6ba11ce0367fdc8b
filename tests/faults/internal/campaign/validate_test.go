package campaign

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// noFault returns a run without a fault.
func noFault() Run {
	return Run{Fault: fault.Fault{Name: "nothing", Inject: func(*fault.System) {}}, On: fault.OnServer, Seed: 1}
}

// Validation of a kept history must find the same violations as before. This history is a
// real one, with a forged grant.
func TestKeptHistoryHasTheSameViolations(t *testing.T) {
	t.Parallel()
	r := runFault(t.Context(), noFault())
	if r.Skipped {
		t.Skip(r.Log)
	}
	if r.Failed {
		t.Fatal(r.Log)
	}
	addSecondHolder(r.History)
	r.Violations = validate.All(r.History)
	if len(r.Violations) == 0 {
		t.Fatal("the checks do not see two holders")
	}
	dir, err := r.keep(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	code := Main(t.Context(), &output, []string{"-validate", filepath.Join(dir, historyFile)})
	_, violations, _ := strings.Cut(output.String(), "\n")
	kept, err := os.ReadFile(filepath.Join(dir, ViolationsFile))
	if err != nil || code != exitFailed {
		t.Errorf("exit code %d, %v", code, err)
	}
	before, after := withoutExamples(string(kept)), withoutExamples(violations)
	for i := range max(len(before), len(after)) {
		if i >= min(len(before), len(after)) || before[i] != after[i] {
			t.Fatalf("of %d violations, and then %d, these differ:\n%s\n%s", len(before), len(after), before[min(i, len(before)-1)], after[min(i, len(after)-1)])
		}
	}
}

// withoutExamples returns the violations line by line, without the example: of several
// calls that do not fit, Porcupine may name another one each time.
func withoutExamples(violations string) []string {
	lines := strings.Split(violations, "\n")
	for i := range lines {
		lines[i], _, _ = strings.Cut(lines[i], "; the first one that does not fit")
	}
	return lines
}

// addSecondHolder adds a lease that is granted and released while another client holds the
// key.
func addSecondHolder(h *history.History) {
	for _, op := range h.Ops {
		if op.Kind != history.Lock || op.Outcome != history.Granted || op.IsShared() {
			continue
		}
		twin := op
		twin.Client, twin.Lease, twin.Episode, twin.Call = 99, "forged", "forged", op.Return
		twin.Return++
		end := twin
		end.Kind, end.Outcome = history.Release, history.Done
		end.Call, end.Return, end.ReliedUntil = twin.Return+1, twin.Return+2, twin.Return+1
		h.Ops = append(h.Ops, twin, end)
		return
	}
}

func TestInvalidHistoryIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, path + ".not"} {
		if code := Main(t.Context(), &bytes.Buffer{}, []string{"-validate", path}); code != exitUsage {
			t.Errorf("exit code %d", code)
		}
	}
}

func TestRunOfAFailingFaultIsValidated(t *testing.T) {
	t.Parallel()
	run := noFault()
	run.Fault.Inject = func(s *fault.System) { s.Fatal("it does not work") }
	r := runFault(t.Context(), run)
	if r.Skipped {
		t.Skip(r.Log)
	}
	if !r.Failed || !strings.Contains(r.Log, "it does not work") || r.History == nil || r.History.Recovered != r.History.Begun {
		t.Errorf("failed %v, log %q, history %v", r.Failed, r.Log, r.History != nil)
	}
	if len(r.ServerLogs) != 1 {
		t.Errorf("%d logs of servers", len(r.ServerLogs))
	}
}

// An unserved is a workload with a client that is never served.
type unserved struct{}

func (unserved) AwaitGrants(int)  {}
func (unserved) AwaitEachClient() { runtime.Goexit() }

func TestRunWithAnUnservedClientIsJudged(t *testing.T) {
	h := &history.History{}
	onGoroutine(func() { warmUp(unserved{}, h) })
	if h.Begun == 0 {
		t.Error("the history has no beginning")
	}
}

func TestAnInterruptedRunEnds(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	run := noFault()
	run.Fault.Inject = func(s *fault.System) {
		s.Workload.AwaitGrants(1)
		interrupt()
		s.Workload.AwaitGrants(1 << 20)
	}
	if r := runFault(ctx, run); r.History != nil {
		t.Error("it has a history")
	}
}
