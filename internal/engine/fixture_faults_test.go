package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// delays returns a function for switchable that delays each of the transitions; without names, all.
func delays(d time.Duration, transitions ...string) func(string, storetest.AnyRequest) error {
	return func(transition string, _ storetest.AnyRequest) error {
		if len(transitions) == 0 || slices.Contains(transitions, transition) {
			time.Sleep(d)
		}
		return nil
	}
}

// fails returns a function for switchable by which the transitions fail; without names, all.
func fails(err error, transitions ...string) func(string, storetest.AnyRequest) error {
	return func(transition string, _ storetest.AnyRequest) error {
		if len(transitions) == 0 || slices.Contains(transitions, transition) {
			return err
		}
		return nil
	}
}

// failsUntil returns a function for switchable by which all transitions fail until this time.
func failsUntil(back time.Time, err error) func(string, storetest.AnyRequest) error {
	return func(string, storetest.AnyRequest) error {
		if time.Now().Before(back) {
			return err
		}
		return nil
	}
}

// delaysOnce delays the first reply to a transition.
func delaysOnce(s *fakeStore, transition string, d time.Duration) {
	delayed := false
	s.after.set(func(name string, _ storetest.AnyRequest) error {
		if name == transition && !delayed {
			delayed = true
			time.Sleep(d)
		}
		return nil
	})
}

// errDown is the fault of a store that cannot be reached.
var errDown = &store.Fault{Temporary: true, Err: errors.New("down")}

var errNoCommitReply = &store.Fault{Unknown: true, Temporary: true, Err: errors.New("no reply")}
