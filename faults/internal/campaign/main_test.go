package campaign

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/reqlock/reqlock/faults/internal/crew"
)

func TestMain(m *testing.M) {
	if code, client := crew.Main(); client {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
