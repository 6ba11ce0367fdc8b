package sidebyside

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
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

// What only this tree has.
var (
	sealed = []core.Option{core.WithSealer(sealer())}
	once   = []core.Option{core.WithoutAnswer()}
)

func sealer() core.Sealer {
	sealer, err := core.NewAESSealer("now", map[string][]byte{"now": make([]byte, 32)})
	if err != nil {
		panic(err)
	}
	return sealer
}

// detached returns a handler whose work goes on until the test ends it.
func detached(rdb *redis.Client) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hold := r.Header.Get("X-Hold")
		work, err := core.Detach(r.Context())
		if err != nil {
			nethttplock.WriteError(w, r, err)
			return
		}
		go func() {
			rdb.BLPop(work.Context(), time.Minute, hold)
			_ = work.Release(context.WithoutCancel(work.Context()))
		}()
		w.WriteHeader(http.StatusAccepted)
	})
}
