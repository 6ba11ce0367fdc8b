package adapter

import (
	"net/http"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/internal/answer"
)

// result returns the answer of a handler that has returned, and whether it can be replayed.
// If the handler has set no status, the status is implied, or 200 if that is 0.
func (r *Recorder) result(implied int) (a answer.Answer, replayable bool) {
	a = r.kept
	if r.status == 0 {
		a = answer.Answer{Status: implied, Header: changed(r.filter, r.before, r.header)}
		if implied == 0 {
			a.Status = http.StatusOK
		}
	}
	a.Body = r.body
	return a, a.Status >= http.StatusOK && r.isComplete() && !r.hasTrailers()
}

// isComplete reports whether the whole answer is recorded. An answer that is shorter than
// its Content-Length reaches its client incomplete.
func (r *Recorder) isComplete() bool {
	short := r.status != 0 && hasBody(r.status) && int64(len(r.body)) < r.declared
	return !r.passedThrough && !short
}

// isEmpty reports whether there is no answer, or an empty 200 that can be taken back.
func (r *Recorder) isEmpty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	empty := r.status == http.StatusOK && len(r.body) == 0 && !r.passedThrough
	return !r.hijacked && (r.status == 0 || empty)
}

// hasTrailers reports whether the handler has announced or set trailers.
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

// send sends the recorded answer. Then it applies the handler's later changes of the header
// to the outer writer: they may be trailers.
func (r *Recorder) send() {
	last := r.sent
	switch {
	case r.status == 0:
		last = r.before
	case !r.passedThrough:
		r.deliver()
	}
	apply(r.outer.Header(), last, r.header)
}

// deliver writes the recorded answer to the outer writer.
func (r *Recorder) deliver() {
	apply(r.outer.Header(), r.before, r.sent)
	r.outer.WriteHeader(r.status)
	if len(r.body) > 0 {
		// An error means that the client has disconnected.
		_, _ = r.outer.Write(r.body)
	}
}

// changed returns the replayable fields of the header after, without those that have the
// same values in before: outer middlewares set these for each request. Fields that describe
// the answer are always included.
func changed(f answer.Filter, before, after http.Header) http.Header {
	kept := f.Replayable(after)
	for name, old := range f.Replayable(before) {
		if values, there := kept[name]; there && !answer.OfAnswer(name) && slices.Equal(values, old) {
			delete(kept, name)
		}
	}
	return kept
}

// apply changes a header by the differences between two other headers. It does not change
// fields that are equal in both, because the header's owner may have set them meanwhile.
func apply(header, from, to http.Header) {
	for name, values := range to {
		if old, there := from[name]; !there || !slices.Equal(old, values) {
			header[name] = values
		}
	}
	for name := range from {
		if _, there := to[name]; !there {
			delete(header, name)
		}
	}
}
