package sidebyside

import (
	"context"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// What only this tree has: testdata/old_lacks_test.go stands for it in the old one.
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
