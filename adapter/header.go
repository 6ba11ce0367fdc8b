package adapter

import (
	"net/http"
	"slices"

	"github.com/reqlock/reqlock/internal/answer"
)

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
