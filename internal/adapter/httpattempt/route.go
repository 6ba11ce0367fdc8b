package httpattempt

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/reqlock/reqlock/core"
)

// RouteOf names the route of a request, given its pattern as the framework writes
// it; where that is empty, the path stands for it. What a middleware outside has cut
// off the path, as http.StripPrefix does, stands in front: else routes that are
// mounted at two places would be one.
func RouteOf(r *http.Request, pattern string) string {
	if pattern == "" {
		pattern = r.URL.Path
	}
	return cutOff(r) + pattern
}

// cutOff returns what was cut off the path of a request; all that it was, if
// it was changed in another way.
func cutOff(r *http.Request) string {
	target, err := url.ParseRequestURI(r.RequestURI)
	if err != nil { // a request that no server has read
		return ""
	}
	path := target.EscapedPath()
	if prefix, ok := strings.CutSuffix(path, r.URL.EscapedPath()); ok {
		return prefix
	}
	return path
}

// Refused notes, given the context of a request, that a middleware of ours has
// refused it: its handler has not run, so what is answered for it is not the answer
// to its copies, whatever that is.
func Refused(ctx context.Context) {
	if a, ok := core.AttemptFromContext(ctx); ok && a.Decision() == core.Undecided {
		a.Decide(core.DropAnswer)
	}
}
