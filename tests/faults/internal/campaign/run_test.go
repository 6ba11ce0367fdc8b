package campaign

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// execute executes a fault on a server.
func execute(t *testing.T, inject func(*fault.System)) *Report {
	t.Helper()
	r := runFault(t.Context(), Run{Fault: fault.Fault{Name: "f", Inject: inject}, On: fault.OnServer, Seed: 1})
	if r.Skipped {
		t.Skip(r.Log)
	}
	return r
}

// A real history with a forged grant has a violation, which is kept and found again.
func TestViolationIsKeptAndFoundAgain(t *testing.T) {
	t.Parallel()
	r := execute(t, func(*fault.System) {})
	if r.Failed || len(r.Violations) > 0 {
		t.Fatal(r.Log, r.Violations)
	}
	addSecondHolder(r.History)
	r.History.FastLeases = []history.FastLease{{Process: 1, Client: 2, Call: 3, Return: 4, Fence: 1 << 53, Key: "k"}}
	r.Violations = validate.All(r.History)
	dir, err := r.keep(t.TempDir())
	if err != nil || len(r.Violations) == 0 {
		t.Fatalf("%d violations, %v", len(r.Violations), err)
	}
	var output bytes.Buffer
	if code := Main(t.Context(), &output, []string{"-validate", filepath.Join(dir, historyFile)}); code != exitFailed {
		t.Errorf("exit code %d\n%s", code, output.String())
	}
	if read, err := history.Load(filepath.Join(dir, historyFile)); err != nil || !reflect.DeepEqual(read, r.History) {
		t.Errorf("the history is not read as it was written: %v", err)
	}
	kept, err := os.ReadFile(filepath.Join(dir, ViolationsFile))
	if err != nil || !strings.Contains(string(kept), "mutual-exclusion") || strings.Count(output.String(), "\n") != strings.Count(string(kept), "\n")+1 {
		t.Errorf("kept %v\n%s\nfound again\n%s", err, kept, output.String())
	}
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

func TestRunOfFailingFaultIsValidated(t *testing.T) {
	t.Parallel()
	r := execute(t, func(s *fault.System) {
		s.Cleanup(func() { panic("a panic") })
		s.Cleanup(func() { s.Error("an error") })
		s.Fatal("it does not work")
	})
	for _, said := range []string{"it does not work", "an error", "a panic"} {
		if !r.Failed || !strings.Contains(r.Log, said) {
			t.Errorf("failed %v without %q, log %q", r.Failed, said, r.Log)
		}
	}
	if r.History == nil || r.History.Recovered != r.History.Begun || len(r.ServerLogs) != 1 {
		t.Errorf("history %v, %d server logs", r.History, len(r.ServerLogs))
	}
}
