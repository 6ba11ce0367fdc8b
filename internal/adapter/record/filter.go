package record

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// A Filter says which headers of an answer are replayed. The zero Filter lets
// through what belongs to the stored answer: what its body is (Content-Type,
// Content-Language, Content-Encoding, Content-Disposition, Content-Range and
// X-Content-Type-Options, which http.Error sets), what came of the request
// (Location, Content-Location, ETag, Last-Modified, Link), and what the client
// is to do next (Retry-After, and Allow, which a 405 must have).
//
// All others are those of one exchange, or of a middleware around the handler,
// which runs for a retry as well and sets them anew: cookies, dates, request
// ids, limits, CORS. Of this kind is Vary, to which compression and CORS add
// their names. Cache-Control and Expires count from the first answer, and a
// replay must not be cached as if it were fresh.
//
// A Filter is safe for concurrent use.
type Filter struct {
	also []string // in canonical form
}

// Also returns a Filter that lets the named headers through as well. Those that
// are NeverReplayed still are not.
func (f Filter) Also(names ...string) Filter {
	also := slices.Clone(f.also)
	for _, name := range names {
		also = append(also, http.CanonicalHeaderKey(name))
	}
	return Filter{also}
}

// Replayable returns a copy of what may be replayed of a header. Names are
// compared without regard to case, and returned in canonical form.
//
// What Connection or Trailer names in the header itself is left out: it is for
// the connection, or follows the body.
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

// allows reports whether a header of a name in canonical form is let through.
func (f Filter) allows(name string) bool {
	return (byDefault(name) || slices.Contains(f.also, name)) && !NeverReplayed(name)
}

// byDefault reports whether the zero Filter lets a name through.
func byDefault(name string) bool {
	switch name {
	case "Content-Type", "Content-Language", "Content-Encoding", "Content-Disposition", "Content-Range",
		"X-Content-Type-Options", "Location", "Content-Location", "Etag", "Last-Modified", "Link",
		"Retry-After", "Allow":
		return true
	}
	return false
}

// OfAnswer reports whether a header says something of the stored answer alone: a
// copy has it as the answer has it, whatever those around the handler have set. The
// others that the zero Filter lets through may be theirs: they compress bodies, and
// forbid to guess types.
func OfAnswer(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return byDefault(name) && name != "Content-Encoding" && name != "X-Content-Type-Options"
}

// NeverReplayed reports whether no Filter lets a header of the name through:
// cookies, and what else gives or asks for credentials; what belongs to the
// connection or to the framing of the body, which net/http makes anew; what
// tells of one exchange, such as its date, its trace and its timing; the mark
// of a replay itself; and what is no name of a header.
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

// isToken reports whether a text is a name of a header (RFC 9110, 5.6.2). With
// "Trailer:" before it, as net/http has it, it is none.
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
