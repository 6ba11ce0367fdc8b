package frameworks

import (
	"math/rand/v2"
	"time"

	"github.com/reqlock/reqlock/core"
)

// pauseOf returns after which time a refused job may run, or 0 if the job has run.
//
//nolint:gosec // the pause is no secret
func pauseOf(err error) time.Duration {
	refusal, _ := core.RefusalOf(err)
	if refusal.RetryAfter == 0 {
		return 0
	}
	return refusal.RetryAfter + rand.N(refusal.RetryAfter) // so that not all come back at once
}
