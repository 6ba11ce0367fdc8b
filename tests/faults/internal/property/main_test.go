package property

import (
	"flag"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// sequences is the number of sequences in each test, unless -rapid.checks sets another.
const sequences = "100"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", sequences); err != nil {
		panic(err)
	}
	suite.Main(m)
}
