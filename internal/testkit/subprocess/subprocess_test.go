package subprocess

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// suiteTimeout is longer than any of these tests waits.
const suiteTimeout = 5 * time.Minute

// childOrders are the orders of TestChild.
type childOrders struct {
	Mode string
	Word string
}

// The modes of TestChild.
const (
	serve = "serve" // report the word, and serve until stopped
	fail  = "fail"  // fail with the word as message
	count = "count" // report the word all the time
	nest  = "nest"  // start a child that sleeps, and serve
	sleep = "sleep" // ignore the end of the standard input
)

// TestChild is the child of the other tests.
func TestChild(t *testing.T) {
	orders := Orders[childOrders](t)
	switch orders.Mode {
	case serve:
		Report("word", orders.Word)
		Report("twice")
		Report("twice")
		AwaitStop()
		_, _ = os.Stderr.WriteString("stopped\n")
	case fail:
		t.Error(orders.Word)
	case count:
		for i := 0; ; i++ {
			Report("count", orders.Word)
			time.Sleep(time.Millisecond)
		}
	case nest:
		nested := Start(t, "TestChild", childOrders{Mode: sleep})
		Report("nested", strconv.Itoa(nested.Pid()))
		AwaitStop()
	case sleep:
		time.Sleep(suiteTimeout)
	}
}

func TestOrdersSkipsTheTestInTheParent(t *testing.T) {
	t.Parallel()
	t.Run("without orders", func(t *testing.T) {
		defer func() {
			if !t.Skipped() {
				t.Error("the test was not skipped")
			}
		}()
		Orders[childOrders](t)
	})
}

func TestChildReceivesItsOrdersAndReports(t *testing.T) {
	t.Parallel()
	p := Start(t, "TestChild", childOrders{serve, "two fields"})
	suite.Eventually(t, "two reports", func() bool { return p.Reports("twice") == 2 })
	if rest, found := p.ReportAfter("word"); !found || rest != "two fields" {
		t.Errorf("reported %q, %t", rest, found)
	}
	if rest, found := p.ReportAfter("wor"); found {
		t.Errorf("a part of a word found %q", rest)
	}
	if p.HasEnded() {
		t.Error("ended before Stop")
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if out := p.Output(); !strings.Contains(out, "stopped") || strings.Contains(out, "twice") {
		t.Errorf("output %q", out)
	}
}

func TestWaitReturnsTheFailureOfTheChild(t *testing.T) {
	t.Parallel()
	p := Start(t, "TestChild", childOrders{fail, "the cause"})
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	if err := suite.Receive(t, "the child ends", ended); err == nil || !strings.Contains(err.Error(), "the cause") {
		t.Errorf("err = %v", err)
	}
}

func TestKillEndsTheChild(t *testing.T) {
	t.Parallel()
	p := Start(t, "TestChild", childOrders{Mode: serve})
	p.Kill()
	p.Kill()
	if !p.HasEnded() || p.Wait() == nil {
		t.Error("the child has not been killed")
	}
	suite.AwaitClosed(t, "the child ends", p.Done())
}
