package sidebyside

import (
	"fmt"
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

var (
	account = core.Named("account", nethttplock.Header("X-Account"))
	permits = core.Permits(2, account)
	shared  = core.Shared(account)
	leaseOf = core.FromContext
)

const endUnknown = core.Uncertain

func referring() []core.Option { return nil }

func renamed(e core.Event) string {
	refusal, _ := core.OutcomeOf(e.Err)
	return fmt.Sprintf("idempotent: %t free: %t ending: %d code: %q", e.Attempt, e.Handover == core.Free, e.Ending, refusal.Code)
}

// The old tree can neither seal an answer, nor leave it out, nor detach a lease.
var sealed, once []nethttplock.Option

func detached(*redis.Client) http.Handler { return http.NotFoundHandler() }
