package check

import (
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

func TestMain(m *testing.M) { redistest.VerifyTestMain(m) }
