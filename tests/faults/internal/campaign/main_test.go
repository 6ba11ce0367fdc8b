package campaign

import (
	"os"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/crew"
)

func TestMain(m *testing.M) {
	if code, client := crew.Main(); client {
		os.Exit(code)
	}
	suite.Main(m)
}
