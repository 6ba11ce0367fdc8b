package subprocess

import (
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
	<-p.Done()
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
	if _, err := stateOf(pid); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	suite.Eventually(t, "the child of the child ends", func() bool {
		state, err := stateOf(pid)
		return err != nil || state == 'Z' // until the init process of a container collects it
	})
}
