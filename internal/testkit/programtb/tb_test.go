package programtb

import (
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A program whose failures are lost would pass whatever the product does.
func TestResultSaysHowARunEnded(t *testing.T) {
	for name, test := range map[string]struct {
		f   func(tb testing.TB)
		err string // a part of the expected error
	}{
		"return":           {func(tb testing.TB) { tb.Log("a line") }, ""},
		"error":            {func(tb testing.TB) { tb.Error("no answer") }, "no answer"},
		"fatal":            {func(tb testing.TB) { tb.Fatalf("no %s", "answer") }, "no answer"},
		"panic":            {func(testing.TB) { panic("no answer") }, "panic: no answer"},
		"fatal in cleanup": {func(tb testing.TB) { tb.Cleanup(func() { tb.Fatal("left") }) }, "left"},
	} {
		result := Run(t.Context(), name, test.f)
		err := result.Err()
		if result.Failed != (test.err != "") || (err != nil) != result.Failed || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: got %+v, and the error %v", name, result, err)
		}
	}
}
