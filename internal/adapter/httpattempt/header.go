package httpattempt

import (
	"net/http"
	"slices"

	"github.com/reqlock/reqlock/internal/adapter/record"
)

// changed returns what is replayable of a header, but for the names that have
// the values which they had before: those are set anew for each request, by
// whoever has set them. What is of the answer alone is always a part of it.
func changed(f record.Filter, before, after http.Header) http.Header {
	kept := f.Replayable(after)
	for name, old := range f.Replayable(before) {
		if values, there := kept[name]; there && !record.OfAnswer(name) && slices.Equal(values, old) {
			delete(kept, name)
		}
	}
	return kept
}

// apply changes a header as one was changed into another. It leaves alone what
// was not changed: between them, whoever the header belongs to may have set it.
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
