package suite

import (
	"fmt"
	"testing"
	"time"
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

func TestVariablesSetDurationsAndCounts(t *testing.T) {
	const variable = "REQLOCK_TEST_OF_SUITE"
	for value, want := range map[string]struct {
		d time.Duration // 0 if the value is refused
		n int
	}{
		"": {d: time.Minute, n: 3}, "2s": {d: 2 * time.Second}, "5": {n: 5}, "0": {}, "x": {},
	} {
		t.Setenv(variable, value)
		tb := &ended{}
		if d := orEnd(tb, func() time.Duration { return Duration(tb, variable, time.Minute) }); d != want.d {
			t.Errorf("%q is %v", value, d)
		}
		if n := orEnd(tb, func() int { return Count(tb, variable, 3) }); n != want.n {
			t.Errorf("%q is %d", value, n)
		}
	}
}

// orEnd returns what f returns, or the zero value if f ends the test.
func orEnd[T any](tb *ended, f func() T) (got T) {
	defer func() {
		if r := recover(); r != nil && r != tb {
			panic(r)
		}
	}()
	return f()
}
