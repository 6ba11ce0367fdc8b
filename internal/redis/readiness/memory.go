package readiness

import (
	"context"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// evictionPolicy returns the maxmemory-policy of a server that evicts keys when its memory is
// full. It returns "" if the server evicts no keys, or does not report its policy.
func (p *probe) evictionPolicy(ctx context.Context) (policy string) {
	info := command.New(0, []any{"info", "memory"})
	if p.send(ctx, info) != nil {
		return ""
	}
	text, _ := info.Text()
	fields := command.InfoFields(text)
	policy = fields["maxmemory_policy"]
	if limit := fields["maxmemory"]; limit == "" || limit == "0" || policy == "noeviction" {
		return ""
	}
	return policy
}
