package record

import (
	"maps"
	"slices"
	"strings"
)

// Metadata returns a copy of what may be replayed of the metadata that a gRPC
// handler has set, as a header or as a trailer. Names are returned in lower
// case, and those without a value are left out, since nothing is sent for them.
//
// All but what is MetadataNeverReplayed is let through. For HTTP it is the other
// way round (Filter): there all that stands around a handler writes into one
// header, whose names are registered, so that those of an answer can be listed.
// Here only what is set inside the interceptor is seen, by names that
// applications make up.
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

// MetadataNeverReplayed reports whether metadata of the name is left out: what
// is NeverReplayed as a header, since gateways make one of it; and what gRPC
// itself has to say, which is that of one exchange: names that begin with
// "grpc-" or a colon, the type of the content and the user agent.
func MetadataNeverReplayed(name string) bool {
	switch name = strings.ToLower(name); name {
	case "content-type", "user-agent":
		return true
	}
	return strings.HasPrefix(name, "grpc-") || NeverReplayed(name)
}
