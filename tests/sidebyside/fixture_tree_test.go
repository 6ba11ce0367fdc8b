package sidebyside

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/metadata"

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

// referring returns the options of a process that refers to each request by its account.
func referring() []core.Option { return []core.Option{core.WithReference(accountOf)} }

func accountOf(ctx context.Context) string {
	return strings.Join(metadata.ValueFromIncomingContext(ctx, "x-account"), "")
}

// renamed returns the fields of an event that were renamed. How a waiter learned of its grant depends on the network.
func renamed(e core.Event) string {
	refusal, _ := core.RefusalOf(e.Err)
	return fmt.Sprintf("idempotent: %t free: %t ending: %d code: %q", e.Idempotent, e.Grant == core.GrantFree, e.Ending, refusal.Code)
}
