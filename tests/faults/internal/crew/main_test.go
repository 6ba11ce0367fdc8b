package crew

import (
	"os"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

func TestMain(m *testing.M) {
	if code, client := Main(); client {
		os.Exit(code)
	}
	redistest.VerifyTestMain(m)
}
