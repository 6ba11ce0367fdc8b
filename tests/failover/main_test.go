package failover

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// patience bounds the wait for what must happen. It is far longer than that takes on a
// busy machine.
const patience = 30 * time.Second
