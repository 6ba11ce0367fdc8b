package httpkey

import "net/http"

// DefaultMaxBody is the maximum number of bytes of a body that are read for a key or a
// fingerprint, by default.
const DefaultMaxBody = 1 << 20

// LimitBody sets the maximum number of bytes that the keys of a middleware read of a request's body:
// that of core.WithMaxBody, or DefaultMaxBody for 0. A middleware calls it for each request,
// because a middleware around it may have set another limit. It calls LeaveBody behind its keys.
func LimitBody(r *http.Request, limit int64) {
	buffered, ok := r.Body.(*bufferedBody)
	switch {
	case ok:
		buffered.limit.Store(limit)
	case limit > 0 && r.Body != nil && r.Body != http.NoBody:
		buffered = &bufferedBody{source: r.Body} // which ReadBody would make
		buffered.limit.Store(limit)
		r.Body = buffered
	}
}

// LeaveBody takes back what LimitBody has put around a body that no key has read. The server looks
// at the type of the body to find out whether its client still waits for 100 (Continue).
func LeaveBody(r *http.Request) {
	if buffered, ok := r.Body.(*bufferedBody); ok && buffered.isUntouched() {
		r.Body = buffered.source
	}
}

// BodyLimit returns the limit that LimitBody has set.
func BodyLimit(r *http.Request) int64 {
	if buffered, ok := r.Body.(*bufferedBody); ok && buffered.limit.Load() > 0 {
		return buffered.limit.Load()
	}
	return DefaultMaxBody
}
