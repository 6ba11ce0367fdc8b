package campaign

import (
	"os"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/traffic"
)

func TestMain(m *testing.M) {
	if code, client := traffic.Main(); client {
		os.Exit(code)
	}
	suite.Main(m)
}
