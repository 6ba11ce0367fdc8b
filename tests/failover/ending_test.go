package failover

import (
	"fmt"
)

// A point is where an idempotent request is when the master fails. Its handler has
// had its effect in all of them.
type point string

const (
	running point = "its handler ends when the master has failed"
	amid    point = "its handler ends in the midst of the time without a master"
	soon    point = "its handler ends when somebody was promoted"
	late    point = "its handler ends when there is another master"
	sent    point = "its commit is sent, and Redis has not got it"
	unheard point = "its commit is done, and nobody has heard"
	heard   point = "its commit is done, and its client has the answer"
)

// ending is the part of idempotent requests that end when the master fails.
type ending struct {
	*scene
	stories []*story
	clean   []*service // that have nothing to do with the requests before
}

func (e *ending) begin() {
	for n := range 2 {
		e.clean = append(e.clean, e.service(n, streamWait))
	}
	for i, at := range []point{running, amid, soon, late, sent, unheard, heard} {
		for _, overGRPC := range []bool{false, true} {
			st := &story{
				scene: e.scene, point: at, overGRPC: overGRPC,
				mayEnd: make(chan struct{}), answered: make(chan struct{}),
			}
			st.serve(i)
			st.start(fmt.Sprintf("%s-%d-%v", e.name, i, overGRPC))
			e.stories = append(e.stories, st)
		}
	}
}

func (e *ending) poise() {
	for _, st := range e.stories {
		st.poise()
	}
}

func (e *ending) replace() {
	for _, st := range e.stories {
		for _, release := range st.release {
			release() // it arrives late, if at all
		}
		if st.point == late {
			st.finish()
		}
	}
}

// tries is how often the request comes again.
const tries = 4

func (e *ending) end() {
	var became tally
	for _, st := range e.stories {
		awaitClosed(e.t, "the client has an answer", st.answered)
		for i := range tries {
			st.retries = append(st.retries, st.retry(i, e.clean[i%2]))
		}
		became.add(st.judge())
	}
	e.figures.note("%s", &became)
}
