package suite

import (
	"fmt"
	"testing"
)

// An ended is a testing.TB that records the call that ends the test.
type ended struct {
	testing.TB
	how string
}

func (*ended) Helper()                             {}
func (e *ended) Fatalf(format string, args ...any) { e.end("fatal: "+format, args...) }
func (e *ended) Skipf(format string, args ...any)  { e.end("skip: "+format, args...) }

func (e *ended) end(format string, args ...any) {
	e.how = fmt.Sprintf(format, args...)
	panic(e)
}

func TestMissingProgramIsFailureWhereItIsRequired(t *testing.T) {
	for value, want := range map[string]string{
		"":  "skip: no curl",
		"1": "fatal: REQLOCK_REQUIRE_REDIS is set: no curl",
	} {
		t.Setenv(RequireEnv, value)
		tb := &ended{}
		func() {
			defer func() {
				if recover() != tb {
					t.Error("the test does not end")
				}
			}()
			SkipOrFail(tb, "no %s", "curl")
		}()
		if tb.how != want {
			t.Errorf("%s=%q: %q, want %q", RequireEnv, value, tb.how, want)
		}
	}
}
