package fiberlock_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/fiberlock"
)

// Fiber uses the memory of a request again for the next one of its connection, while the engine still
// has the key of a lease.
func TestKeysDoNotShareTheMemoryOfTheirRequests(t *testing.T) {
	t.Parallel()
	const clients, requests = 8, 40
	for name, key := range map[string]fiberlock.Key{
		"Params":              fiberlock.Params("id"),
		"Header":              fiberlock.Header("X-Key"),
		"Locals":              fiberlock.Locals("key"),
		"a function":          core.KeyOf(func(c fiber.Ctx) (string, error) { return c.Get("X-Key"), nil }),
		"a function of First": core.First(core.KeyOf(func(c fiber.Ctx) (string, error) { return c.Get("X-Key"), nil })),
		"a Getter":            core.Getter(func(c fiber.Ctx) string { return c.Params("id") }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithWait(10*time.Second))
			var mu sync.Mutex
			leases := make(map[*core.Lease]string)
			app := fiber.New()
			app.Use(func(c fiber.Ctx) error {
				c.Locals("key", c.Get("X-Key"))
				return c.Next()
			})
			app.Post("/:id", fiberlock.Middleware(locks.Locker, key), func(c fiber.Ctx) error {
				lease, _ := core.LeaseFromContext(c)
				mu.Lock()
				defer mu.Unlock()
				leases[lease] = strings.Clone(c.Get("X-Key"))
				return nil
			})
			url := listen(t, app)
			var sent sync.WaitGroup
			for client := range clients {
				connection := newClient(t)
				sent.Go(func() {
					for n := range requests {
						key := fmt.Sprintf("key-%d-%02d", (client+n)%clients, n)
						if w := send(t, connection, newRequest(t, http.MethodPost, url+"/"+key, "", "X-Key: "+key)); w.Code != http.StatusOK {
							t.Errorf("%d %s", w.Code, w.Body)
						}
					}
				})
			}
			sent.Wait()
			if len(leases) != clients*requests {
				t.Errorf("%d leases", len(leases))
			}
			for lease, key := range leases {
				if lease.Key() != key {
					t.Fatalf("the key %q has become %q", key, lease.Key())
				}
			}
		})
	}
}
