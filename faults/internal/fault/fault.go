package fault

import "github.com/reqlock/reqlock/internal/redistest"

// A Fault is one way in which a run goes wrong.
type Fault struct {
	// Name says it in a few words, joined by dashes.
	Name string
	// On is which deployments it can happen to.
	On []redistest.Kind
	// Args are added to the command line of each server.
	Args []string
	// Losing is set where Play declares a loss of data.
	Losing bool
	// Play makes it happen, once or several times, while the clients work. It
	// returns when all is well again: nothing of it is left behind.
	Play func(s *Scene)
}
