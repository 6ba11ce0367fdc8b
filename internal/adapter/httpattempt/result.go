package httpattempt

import (
	"net/http"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/internal/adapter/record"
)

// result returns the answer of a handler that has returned, and whether it can
// be replayed. Where there is no status, it is the implied one, or 200.
func (r *Recorder) result(implied int) (a record.Answer, replayable bool) {
	a = r.kept
	if r.status == 0 {
		a = record.Answer{Status: implied, Header: changed(r.filter, r.before, r.header)}
		if implied == 0 {
			a.Status = http.StatusOK
		}
	}
	a.Body = r.body
	return a, a.Status >= http.StatusOK && r.whole() && !r.hasTrailers()
}

// whole reports whether the answer is all there. One that is shorter than it
// has declared reaches its client as broken off.
func (r *Recorder) whole() bool {
	short := r.status != 0 && hasBody(r.status) && int64(len(r.body)) < r.declared
	return !r.passing && !short
}

// hasTrailers reports whether the handler has announced trailers, or set one.
func (r *Recorder) hasTrailers() bool {
	announced := r.sent
	if r.status == 0 {
		announced = r.header
	}
	if !slices.Equal(announced["Trailer"], r.before["Trailer"]) {
		return true
	}
	for name := range r.header {
		if _, old := r.before[name]; !old && strings.HasPrefix(name, http.TrailerPrefix) {
			return true
		}
	}
	return false
}

// send sends what is recorded, and then changes the header of the writer behind
// as the handler has changed its own since, which may have set trailers.
func (r *Recorder) send() {
	last := r.sent
	switch {
	case r.status == 0:
		last = r.before
	case !r.passing:
		r.deliver()
	}
	apply(r.outer.Header(), last, r.header)
}

// deliver writes what is recorded to the writer behind.
func (r *Recorder) deliver() {
	apply(r.outer.Header(), r.before, r.sent)
	r.outer.WriteHeader(r.status)
	if len(r.body) > 0 {
		// A client that does not read its answer cannot be told.
		_, _ = r.outer.Write(r.body)
	}
	r.body = nil
}
