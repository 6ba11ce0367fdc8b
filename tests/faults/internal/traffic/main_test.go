package traffic

import (
	"os"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) {
	if code, client := Main(); client {
		os.Exit(code)
	}
	suite.Main(m)
}
