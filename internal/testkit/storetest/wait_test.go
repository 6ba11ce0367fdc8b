package storetest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A counting is a testing.TB that counts the errors, and does not report them.
type counting struct {
	testing.TB
	errors int
}

func (*counting) Helper()                 {}
func (c *counting) Errorf(string, ...any) { c.errors++ }

func TestAwaitReturnsWhatDoneReceives(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	got, err := Await(t, func(done func(int, error)) { go done(7, wrong) })
	if got != 7 || err != wrong { //nolint:errorlint // the very error
		t.Errorf("%d, %v", got, err)
	}
}

func TestAwaitFailsWithoutAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tb, begun := &counting{}, time.Now()
		_, err := Await(tb, func(func(int, error)) {})
		if took := time.Since(begun); err == nil || tb.errors != 1 || took != 2*LongBound {
			t.Errorf("%v, %d errors after %v", err, tb.errors, took)
		}
	})
}
