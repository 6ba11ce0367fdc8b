package adapter

import (
	"context"

	"github.com/reqlock/reqlock/internal/bridge"
)

// UnwrapContext lets core find the lease and the attempt of a request in a framework's own context,
// such as a *gin.Context, which has the values of its request only by an option of the engine.
// unwrap returns the context of the request, and false for another context. It is called for
// contexts that carry no lease, and must be safe for concurrent use.
//
// An adapter calls UnwrapContext in an init function, and nowhere else: it is not safe for
// concurrent use.
func UnwrapContext(unwrap func(ctx context.Context) (request context.Context, ok bool)) {
	bridge.UnwrapContext(unwrap)
}
