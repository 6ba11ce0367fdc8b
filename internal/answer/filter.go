package answer

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// A Filter selects the headers of an answer that are replayed. The zero Filter selects the
// headers that describe the stored answer:
//
//   - its body: Content-Type, Content-Language, Content-Encoding, Content-Disposition,
//     Content-Range and X-Content-Type-Options, which http.Error sets
//   - its result: Location, Content-Location, ETag, Last-Modified, Link
//   - the client's next request: Retry-After, and Allow, which a 405 must have
//
// All other headers belong to one exchange, or to a middleware around the handler, which
// runs for a retry, too, and sets them again: cookies, dates, request ids, limits, CORS.
// Vary is one of them: compression and CORS add names to it. Cache-Control and Expires
// refer to the time of the first answer, and a cache must not treat a replay as a fresh
// answer.
//
// A Filter is safe for concurrent use.
type Filter struct {
	also []string // in canonical form
}

// Also returns a Filter that also selects the named headers, except those that are
// NeverReplayed.
func (f Filter) Also(names ...string) Filter {
	also := slices.Clone(f.also)
	for _, name := range names {
		also = append(also, http.CanonicalHeaderKey(name))
	}
	return Filter{also}
}

// Replayable returns a copy of the replayable fields of a header. Names are compared
// without regard to case, and returned in canonical form.
//
// Fields that Connection or Trailer names in the header are left out: they belong to the
// connection, or follow the body.
func (f Filter) Replayable(h http.Header) http.Header {
	var ownNames []string
	names := slices.Sorted(maps.Keys(h)) // two spellings of a name have one order
	for _, name := range names {
		if c := http.CanonicalHeaderKey(name); c == "Connection" || c == "Trailer" {
			ownNames = append(ownNames, listed(h[name])...)
		}
	}
	kept := http.Header{}
	for _, name := range names {
		canonical := http.CanonicalHeaderKey(name)
		if f.allows(canonical) && !slices.Contains(ownNames, canonical) {
			kept[canonical] = append(kept[canonical], h[name]...)
		}
	}
	return kept
}

// allows reports whether the filter selects a name in canonical form.
func (f Filter) allows(name string) bool {
	return (byDefault(name) || slices.Contains(f.also, name)) && !NeverReplayed(name)
}

// byDefault reports whether the zero Filter selects a name.
func byDefault(name string) bool {
	switch name {
	case "Content-Type", "Content-Language", "Content-Encoding", "Content-Disposition", "Content-Range",
		"X-Content-Type-Options", "Location", "Content-Location", "Etag", "Last-Modified", "Link",
		"Retry-After", "Allow":
		return true
	}
	return false
}

// OfAnswer reports whether a header describes only the stored answer. A replay has its
// stored value, even if an outer middleware has set another one. Other headers that the
// zero Filter selects may come from outer middlewares, which compress bodies or set
// X-Content-Type-Options.
func OfAnswer(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return byDefault(name) && name != "Content-Encoding" && name != "X-Content-Type-Options"
}

// NeverReplayed reports whether no Filter selects a header of the name. These are: cookies
// and other headers of credentials; headers of the connection or of the body's framing,
// which net/http sets; headers of one exchange, such as date, trace and timing; the mark of
// a replay; and texts that are not the name of a header.
func NeverReplayed(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Set-Cookie", "Set-Cookie2", "Authorization", "Authentication-Info",
		"Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
		"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Content-Length",
		"Date", "Age", "Server-Timing", "Traceparent", "Tracestate", "X-Request-Id",
		"Idempotent-Replayed":
		return true
	}
	return !isToken(name)
}

// listed returns the names that the values of a header list, in canonical form.
func listed(values []string) []string {
	var names []string
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			names = append(names, http.CanonicalHeaderKey(strings.Trim(name, " \t")))
		}
	}
	return names
}

// isToken reports whether a text is a name of a header (RFC 9110, 5.6.2). A name after
// net/http's prefix "Trailer:" is not one.
func isToken(text string) bool {
	for _, c := range []byte(text) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return text != ""
}
