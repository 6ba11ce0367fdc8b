package crew

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if code, client := Main(); client {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
