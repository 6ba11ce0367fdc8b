package campaign

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// shellArgs returns the arguments that a shell reads from a command line.
func shellArgs(t *testing.T, line string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+line).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimRight(string(out), "\n"), "\n")
}

func TestShellReadsQuotedArguments(t *testing.T) {
	args := []string{"plain", "/a/b-c_1.json", "with space", "it's", "", "^a$", "$HOME", "a;b", "*", "\\", "~"}
	if got := shellArgs(t, strings.TrimPrefix(commandLine(args...), "go run . ")); !slices.Equal(got, args) {
		t.Errorf("%s is read as %q", commandLine(args...), got)
	}
	if got := quote("/a/b-c_1.json"); got != "/a/b-c_1.json" {
		t.Errorf("%s is quoted without need", got)
	}
}

func TestAGivenSeedIsRepeatedAndAnotherOneCountsOn(t *testing.T) {
	for _, c := range []struct {
		seeded bool
		seeds  []uint64
		says   string
	}{{true, []uint64{7, 7, 7}, "all with this seed"}, {false, []uint64{7, 8, 9}, "seed 7 and those after it"}} {
		s := Settings{Seed: 7, Seeded: c.seeded, Count: 3, On: []fault.Deployment{fault.OnServer}}
		if got := s.seeds(); !slices.Equal(got, c.seeds) {
			t.Errorf("got %v, want %v", got, c.seeds)
		}
		if got := s.announce(3); !strings.Contains(got, c.says) || !strings.HasPrefix(got, "seed 7") {
			t.Errorf("it says %q", got)
		}
	}
}

func TestKeptDirectoriesAreNotReused(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a", "b")
	for _, want := range []string{"run-7", "run-7-2", "run-7-3"} {
		dir, err := newDir(out, "run-7")
		if err != nil || dir != filepath.Join(out, want) {
			t.Errorf("got %s, %v; want %s", dir, err, want)
		}
	}
	file := filepath.Join(out, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if dir, err := newDir(file, "run-7"); err == nil {
		t.Errorf("%s is below a file", dir)
	}
}

func TestUnknownFaultIsAnError(t *testing.T) {
	for _, line := range []string{"-run nothing-is-called-so", "-short -run nothing-is-called-so", "-long -run nothing-is-called-so"} {
		var output strings.Builder
		if code := Main(t.Context(), &output, strings.Fields(line)); code != exitUsage || !strings.Contains(output.String(), "no fault that is called like") ||
			strings.Count(output.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, said %q", line, code, output.String())
		}
	}
}

// A control that fails is a violation of the campaign itself.
func TestAFailingControlEndsTheCampaign(t *testing.T) {
	for mode, plan := range map[Mode]string{Short: "-short", Long: "-long"} {
		c, output := fakeCampaign(t, 1, func(r Run) *Report {
			if !r.Careless {
				t.Error("more than the control runs")
			}
			return &Report{History: &history.History{}}
		})
		c.settings.Mode, c.settings.On, c.settings.Seed = mode, fault.Deployments(), 7
		c.settings.Names, c.settings.Out = regexp.MustCompile(""), "a place"
		failed, err := c.runPlan(t.Context())
		if again := "go run . " + plan + " -seed 7 -out 'a place'"; !failed || err != nil || !strings.Contains(output.String(), again) {
			t.Errorf("bad %v, %v, said\n%s", failed, err, output)
		}
		if !strings.HasPrefix(output.String(), "seed 7: the ") {
			t.Errorf("it does not begin with its seed and plan:\n%s", output)
		}
	}
}

func TestRedisServerNeedNotBeOnPATH(t *testing.T) {
	t.Setenv("REQLOCK_REDIS_SERVER", redistest.Program(t))
	t.Setenv("PATH", t.TempDir())
	var output strings.Builder
	if Main(t.Context(), &output, []string{"-run", "nothing-is-called-so"}); !strings.Contains(output.String(), "no fault that is called like") {
		t.Errorf("said %q", output.String())
	}
}

func TestWithoutRedisServerNothingRuns(t *testing.T) {
	t.Setenv("REQLOCK_REDIS_SERVER", "")
	t.Setenv("PATH", t.TempDir())
	for _, line := range []string{"-short", "-long", "-run ."} {
		var output strings.Builder
		if code := Main(t.Context(), &output, strings.Fields(line)); code != exitUsage || !strings.Contains(output.String(), "redis-server") ||
			strings.Count(output.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, said %q", line, code, output.String())
		}
	}
}
