package campaign

import (
	"os"
	"testing"

	"github.com/reqlock/reqlock/faults/internal/crew"
	"github.com/reqlock/reqlock/internal/redistest"
)

func TestMain(m *testing.M) {
	if code, client := crew.Main(); client {
		os.Exit(code)
	}
	redistest.VerifyTestMain(m)
}
