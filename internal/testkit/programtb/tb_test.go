package programtb

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestResultSaysHowARunEnded(t *testing.T) {
	for name, test := range map[string]struct {
		f               func(tb testing.TB)
		failed, skipped bool
		err             string // a part of the expected error
	}{
		"return":           {func(tb testing.TB) { tb.Log("a line") }, false, false, ""},
		"error":            {func(tb testing.TB) { tb.Error("no answer") }, true, false, "no answer"},
		"fatal":            {func(tb testing.TB) { tb.Fatalf("no %s", "answer") }, true, false, "no answer"},
		"skip":             {func(tb testing.TB) { tb.Skip("no server") }, false, true, "no server"},
		"panic":            {func(testing.TB) { panic("no answer") }, true, false, "panic: no answer"},
		"fatal in cleanup": {func(tb testing.TB) { tb.Cleanup(func() { tb.Fatal("left") }) }, true, false, "left"},
	} {
		t.Run(name, func(t *testing.T) {
			result := Run(t.Context(), name, test.f)
			err := result.Err()
			if result.Failed != test.failed || result.Skipped != test.skipped || (err != nil) != (test.err != "") {
				t.Fatalf("got %+v, and the error %v", result, err)
			}
			if err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, want %q", err, test.err)
			}
		})
	}
}

// A server of the outer run that fails to start in the inner one fails both.
func TestFailNowOfOuterRunFailsInnerRun(t *testing.T) {
	var inner Result
	outer := Run(t.Context(), "outer", func(tb testing.TB) {
		inner = Run(tb.Context(), "inner", func(testing.TB) { tb.Fatal("no answer") })
	})
	if !outer.Failed || !inner.Failed || !strings.Contains(inner.Log, "of another TB") {
		t.Errorf("got %+v and %+v", outer, inner)
	}
}

func TestCleanupsRunInReverseAfterTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var order []string
	var dir string
	result := Run(ctx, t.Name(), func(tb testing.TB) {
		dir = tb.TempDir()
		for _, name := range []string{"first", "second"} {
			tb.Cleanup(func() {
				if _, err := os.Stat(dir); err != nil || tb.Context().Err() == nil {
					tb.Errorf("in the cleanup the directory has the error %v, and the context %v", err, tb.Context().Err())
				}
				order = append(order, name)
			})
		}
		cancel() // an interruption
		<-tb.Context().Done()
	})
	if err := result.Err(); err != nil || !slices.Equal(order, []string{"second", "first"}) {
		t.Errorf("the cleanups were %v: %v", order, err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
}
