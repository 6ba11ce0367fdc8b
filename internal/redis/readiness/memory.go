package readiness

import (
	"context"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// evicts returns the policy by which the server evicts keys when its memory is
// full, or "" if it never does, or does not say.
func (s *scene) evicts(ctx context.Context) (policy string) {
	info := command.New(0, []any{"info", "memory"})
	if s.send(ctx, info) != nil {
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
