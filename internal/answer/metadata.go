package answer

import (
	"maps"
	"slices"
	"strings"
)

// Metadata returns a copy of the replayable metadata that a gRPC handler has set, as a
// header or as a trailer. Names are returned in lower case. Names without a value are left
// out, because gRPC does not send them.
//
// It selects all names except those that are MetadataNeverReplayed. For HTTP it is the
// reverse (Filter): there all middlewares around a handler write into one header with
// registered names, so that the headers of an answer can be listed. For gRPC only the metadata
// that is set inside the interceptor is known, and applications choose its names.
func Metadata(md map[string][]string) map[string][]string {
	kept := map[string][]string{}
	for _, spelling := range slices.Sorted(maps.Keys(md)) { // two spellings of a name have one order
		name := strings.ToLower(spelling)
		if len(md[spelling]) > 0 && !MetadataNeverReplayed(name) {
			kept[name] = append(kept[name], md[spelling]...)
		}
	}
	return kept
}

// MetadataNeverReplayed reports whether metadata of the name is left out: names that are
// NeverReplayed as a header, because gateways convert metadata to headers, and metadata of
// gRPC itself: names that begin with "grpc-" or a colon, the content type and the user
// agent.
func MetadataNeverReplayed(name string) bool {
	switch name = strings.ToLower(name); name {
	case "content-type", "user-agent":
		return true
	}
	return strings.HasPrefix(name, "grpc-") || NeverReplayed(name)
}
