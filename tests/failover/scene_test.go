package failover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// errBrokenOff is the cause with which the context of a scene ends before the scene
// does: something else has failed, and has been reported.
var errBrokenOff = errors.New("the scene is broken off")

// A scene is one failure of one master, and what callers do meanwhile.
type scene struct {
	*deployment
	t       *testing.T
	name    string // of its keys
	failure failure
	master  *redistest.Server
	ledger  *ledger
	history history

	ctx     context.Context // ends with the scene, also where that is broken off
	struck  chan struct{}   // closed when the master has failed
	at      time.Time       // when; set before struck is closed
	healed  time.Time       // when all that ran was healthy with another one
	group   sync.WaitGroup
	late    atomic.Int64 // by how much a timer was late at most, in nanoseconds
	figures figures

	promotion promotion
}

// A part is what some callers do in a scene.
type part interface {
	begin()   // comes into place, with time to spare
	poise()   // does what can be done only for a moment before the failure
	replace() // another master is at work, and the old one is still as it is
	end()     // all is healthy: says what came of it
}

// figures are what a scene has measured, a line of the table. Times count from the
// failure.
type figures struct {
	promoted, first, last, healthy time.Duration // another master, its first run, all waiters served, all healthy
	hereGap, thereGap              time.Duration // the longest time without a run on a key of the master, and of another
	there                          int           // how many requests ran at other masters before first
	lines                          []string
}

// note adds a word to the line.
func (f *figures) note(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

const figuresHead = "promoted    first      all  healthy      gap  gap elsewhere, runs there"

func (f figures) String() string {
	return fmt.Sprintf("%8v %8v %8v %8v %8v %8v %6d  %s", round(f.promoted), round(f.first), round(f.last),
		round(f.healthy), round(f.hereGap), round(f.thereGap), f.there, strings.Join(f.lines, "; "))
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// service returns a process that serves.
func (s *scene) service(number int, wait time.Duration, opts ...core.Option) *service {
	s.t.Helper()
	return newService(s.t, newProcess(s.t, s.client(s.t, number, nil), opts...), s.ledger, wait)
}

// process returns a process with a client of its own.
func (s *scene) process(number int, opts ...core.Option) *process {
	s.t.Helper()
	return newProcess(s.t, s.client(s.t, number, nil), opts...)
}

// play plays the scene.
func (s *scene) play() {
	s.t.Helper()
	var over context.CancelCauseFunc
	s.ctx, over = context.WithCancelCause(context.Background())
	defer s.group.Wait()
	defer over(errBrokenOff)
	s.failure.before(s.deployment, s.master)
	parts := []part{&holding{scene: s}, &handing{scene: s}, &queuing{scene: s}, &several{scene: s}, &ending{scene: s}, &streaming{scene: s}}
	for _, p := range parts {
		p.begin()
	}
	s.settle()
	for _, p := range parts {
		p.poise()
	}
	s.settle()
	s.watchPromotion()
	s.at = time.Now()
	s.failure.strike(s.deployment, s.master)
	close(s.struck)
	s.failure.replace(s.deployment, s.master)
	s.healed = time.Now()
	for _, p := range parts {
		p.replace()
	}
	s.failure.heal(s.deployment, s.master)
	<-s.promotion.done
	s.figures.healthy, s.figures.promoted = s.healed.Sub(s.at), s.promotion.at.Sub(s.at)
	for _, p := range slices.Backward(parts) { // who holds ends last
		p.end()
	}
	over(nil)
	s.group.Wait()

	n, faults := s.history.overlaps(s.failure.loss != nothing)
	faults = append(faults, s.history.falls()...)
	for _, fault := range faults {
		s.t.Error(fault)
	}
	s.figures.note("%d overlaps", n)
}

// isBrokenOff reports whether nothing that callers are told matters any more.
func (s *scene) isBrokenOff() bool { return errors.Is(context.Cause(s.ctx), errBrokenOff) }

// settle returns when the replicas have all that was written, if they get it.
func (s *scene) settle() {
	if s.failure.loss != all {
		s.await()
	}
}

// soakEnv says for how long scenes are played, as in "10m". Without it each is played
// once.
const soakEnv = "REQLOCK_SOAK"

// soakEnd returns when the last scene may begin.
func soakEnd(t *testing.T) time.Time {
	t.Helper()
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv(soakEnv), "0s"))
	if err != nil {
		t.Fatalf("%s: %v", soakEnv, err)
	}
	return time.Now().Add(lasts)
}

// A master is replaced, in each way in which that happens, while its locks are held,
// waited for, and committed.
//
//faults:row 17 loss: Sentinel and Cluster, with and without the last writes, two masters at once
func TestAMasterIsReplaced(t *testing.T) {
	for deployed, start := range deployments {
		t.Run(deployed, func(t *testing.T) {
			t.Parallel()
			d := start(t)
			table := []string{figuresHead}
			end := soakEnd(t)
			for round := 0; round == 0 || time.Now().Before(end); round++ {
				for name, f := range failures { // in any order
					if !f.played(name, deployed) {
						continue
					}
					t.Run(name, func(t *testing.T) {
						s := &scene{
							deployment: d, t: t, failure: f, ledger: newLedger(), struck: make(chan struct{}),
							promotion: promotion{done: make(chan struct{})},
							name:      fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), round),
						}
						masters := d.masters()
						s.master = masters[rand.IntN(len(masters))]
						s.play()
						table = append(table, fmt.Sprintf("%v  %s", s.figures, name))
					})
				}
			}
			d.wantTidy(t)
			t.Logf("%s:\n%s", deployed, strings.Join(table, "\n"))
		})
	}
}
