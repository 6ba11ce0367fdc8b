package load

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// await calls wrong until it returns "". A test that fails logs the last result.
func await(t *testing.T, what string, wrong func() string) {
	t.Helper()
	found := ""
	defer func() {
		if found != "" {
			t.Logf("%s: %s", what, found)
		}
	}()
	suite.Eventually(t, what, suite.Every(10*time.Millisecond, func() bool {
		found = wrong()
		return found == ""
	}))
}
