package readiness

import (
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/topology"
)

// AdviseOnClient returns a *Finding if a client works without ContextTimeoutEnabled, or nil. It
// does no I/O.
func AdviseOnClient(rdb redis.UniversalClient) error {
	if !topology.LacksContextTimeout(rdb) {
		return nil
	}
	return &Finding{text: "ContextTimeoutEnabled is off in the options of the redis client, so that a caller cannot send its own commands, " +
		"and each lock takes longer: set ContextTimeoutEnabled to true"}
}
