package subprocess

import (
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// TestChild is the child of the test below. It fails with its orders as message.
func TestChild(t *testing.T) { t.Error(Orders[string](t)) }

// A child whose failure is lost would pass whatever the product does.
func TestWaitReturnsTheFailureOfTheChild(t *testing.T) {
	t.Parallel()
	p := Start(t, "TestChild", "the cause")
	if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "the cause") {
		t.Errorf("err = %v", err)
	}
}
