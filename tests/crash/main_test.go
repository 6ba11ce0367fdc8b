package crash

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// patience bounds everything that has to happen. It is far longer than anything takes on a
// busy machine.
const patience = 30 * time.Second
