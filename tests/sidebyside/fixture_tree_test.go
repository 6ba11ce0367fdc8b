package sidebyside

import (
	"fmt"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// What the old tree has under other names: see testdata.
var (
	account = nethttplock.Header("X-Account").Named("account")
	permits = account.Permits(2)
	shared  = account.Shared()
	leaseOf = core.LeaseFromContext
)

const endUnknown = core.EndUnknown

// renamed returns the fields of an event that were renamed. How a waiter learned of its grant depends on the network.
func renamed(e core.Event) string {
	refusal, _ := core.RefusalOf(e.Err)
	return fmt.Sprintf("idempotent: %t free: %t ending: %d code: %q", e.Idempotent, e.Grant == core.GrantFree, e.Ending, refusal.Code)
}
