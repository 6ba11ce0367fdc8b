package core

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/reqlock/reqlock/internal/engine"
)

// limitOf returns the limit of a key's leases: that of the key if it has one, or else that of
// the view.
func (l *Locker) limitOf(key lockKey) engine.Limit {
	if key.HasLimit {
		return engine.Limit(key.Limit)
	}
	return l.settings.limit
}

// compareLimits orders limits by what a lease excludes: first Exclusive, then fewer permits
// before more, and Unlimited last.
func compareLimits(a, b engine.Limit) int { return cmp.Compare(uint(a), uint(b)) }

// checkLimit refuses a limit of the view that its other settings exclude.
func (s *settings) checkLimit() error {
	if why := s.whyNotShared(s.limit); why != "" {
		return errors.New("reqlock: With" + nameOfLimit(s.limit) + ": " + why)
	}
	return nil
}

// checkKeyLimit refuses a limit of a key that the settings of the view exclude.
func (s *settings) checkKeyLimit(limit engine.Limit) error {
	if why := s.whyNotShared(limit); why != "" {
		return asKeyError(fmt.Errorf("%s: %s", nameOfLimit(limit), why))
	}
	return nil
}

// checkLimits refuses the limits that a key may have, before there is a request.
func (s *settings) checkLimits(limits []int) error {
	for _, limit := range limits {
		if why := s.whyNotShared(engine.Limit(limit)); why != "" {
			return errors.New(nameOfLimit(engine.Limit(limit)) + ": " + why)
		}
	}
	return nil
}

// whyNotShared returns why a lease with the limit cannot have the settings, or "".
func (s *settings) whyNotShared(limit engine.Limit) string {
	switch {
	case !limit.IsShared():
		return ""
	case s.quarantine != 0:
		return "the servers of a quorum vote for one holder, and cannot count several: use a locker of New"
	case s.minHold > 0:
		return "WithMinHold cannot keep a key from others when several hold it: leave one of the two out"
	case s.fencing && limit > 1:
		return "WithFencing needs numbers that rise from holder to holder, and holders of permits overlap: leave one of the two out"
	}
	return ""
}

// errSharedAttempt refuses an idempotent request of a view that shares its locks.
var errSharedAttempt = errors.New("reqlock: Begin: WithPermits or WithShared: an idempotent request has its key alone: leave it out")

// nameOfLimit returns the name of the method of a Key that sets a limit.
func nameOfLimit(limit engine.Limit) string {
	if limit == engine.Unlimited {
		return "Shared"
	}
	return "Permits"
}

// checkUpgrade refuses a nested lease with the limit that asks for more than its outer lease
// has. The error is an *Error of the kind ErrUpgrade.
func (l *Locker) checkUpgrade(outer *Lease, limit engine.Limit) *Error {
	switch has := outer.hold.Limit(); {
	case l.settings.fencing && outer.Fence() == 0:
		return &Error{Kind: ErrUpgrade, Cause: errOuterFence}
	case compareLimits(limit, has) >= 0:
		return nil
	case limit == engine.Exclusive:
		return &Error{Kind: ErrUpgrade, Cause: errOuterShared}
	default:
		return &Error{Kind: ErrUpgrade, Cause: errOuterPermits}
	}
}

var (
	errOuterFence   = errors.New("a fencing number, and the outer lease has none: set WithFencing on both")
	errOuterShared  = errors.New("the key alone, and the outer lease is shared: take the key alone first")
	errOuterPermits = errors.New("fewer permits, and the outer lease has more: give both the same number")
)
