package property

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// sequences is the number of sequences in each test, unless -rapid.checks sets another.
const sequences = "100"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", sequences); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}
