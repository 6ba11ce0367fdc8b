package subprocess

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestPausedChildStandsStill(t *testing.T) {
	t.Parallel()
	p := Start(t, "TestChild", childOrders{count, "x"})
	counted := func() int { return p.Reports("count x") }
	suite.Eventually(t, "the child counts", func() bool { return counted() > 0 })
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // the last lines may be in the pipe
	before := counted()
	time.Sleep(50 * time.Millisecond)
	if after := counted(); after != before {
		t.Errorf("the paused child counted from %d to %d", before, after)
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, "the child counts on", func() bool { return counted() > before })
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	p.Kill()
}

func TestPauseFailsAfterTheEnd(t *testing.T) {
	t.Parallel()
	p := Start(t, "TestChild", childOrders{Mode: fail})
	suite.AwaitClosed(t, "the child ends", p.Done())
	if p.Pause() == nil || p.Resume() == nil {
		t.Error("a process that has ended was paused or resumed")
	}
}

func TestChildEndsWhenItsParentIsKilled(t *testing.T) {
	t.Parallel()
	p := Start(t, "TestChild", childOrders{Mode: nest})
	pid := 0
	suite.Eventually(t, "the child has a child", func() bool {
		text, _ := p.ReportAfter("nested")
		pid, _ = strconv.Atoi(text)
		return pid != 0
	})
	runs := func() bool { // one that has ended has no command line, until the init process collects it
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err == nil && len(line) > 0
	}
	if !runs() {
		t.Fatal("the child of the child does not run")
	}
	p.Kill()
	suite.Eventually(t, "the child of the child ends", func() bool { return !runs() })
}
