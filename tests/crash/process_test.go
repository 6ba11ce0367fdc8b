package crash

import (
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/subprocess"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A process is a service process. It is safe for concurrent use.
type process struct {
	*subprocess.Process
	t      *testing.T
	number int
	proxy  *redistest.Proxy // between this process alone and Redis
}

// start starts a service process. The process ends at the latest with the test.
func start(t *testing.T, o orders, proxy *redistest.Proxy) *process {
	t.Helper()
	o.Redis = proxy.Addr()
	return &process{Process: subprocess.Start(t, "TestService", o), t: t, number: o.Process, proxy: proxy}
}

// events returns how many times the process has reported an event of an attempt's key.
func (p *process) events(event, key string) int { return p.Reports(event + " i:" + key) }

// addr returns the address at which the process serves, as soon as it does. It returns ""
// if the process has ended before.
func (p *process) addr() (addr string) {
	suite.Eventually(p.t, "the process serves", func() bool {
		addr, _ = p.ReportAfter(serving)
		return addr != "" || p.HasEnded()
	})
	return addr
}

// stop ends the process in order. It fails the test if the process reports a failure.
func (p *process) stop() {
	p.t.Helper()
	if err := p.Stop(); err != nil {
		p.t.Error(err)
	}
}
