package property

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// games is how many games each test plays, unless -rapid.checks says otherwise.
const games = "100"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", games); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}
