package answer_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/answer"
)

// allowed are the headers that the zero Filter selects.
var allowed = []string{
	"Content-Type", "Content-Language", "Content-Encoding", "Content-Disposition", "Content-Range",
	"X-Content-Type-Options", "Location", "Content-Location", "ETag", "Last-Modified", "Link",
	"Retry-After", "Allow",
}

// never are headers that no Filter selects.
var never = []string{
	"Set-Cookie", "Set-Cookie2", "Authorization", "Authentication-Info", "Proxy-Authenticate",
	"Proxy-Authentication-Info", "Proxy-Authorization", "Connection", "Keep-Alive", "Proxy-Connection", "TE",
	"Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", "Date", "Age", "Server-Timing", "Traceparent",
	"Tracestate", "X-Request-ID", "Idempotent-Replayed",
	"", "Set-Cookie ", " Set-Cookie", "Set-Cookie\t", "Trailer:X-Sum", "X-A:", "X\r\nSet-Cookie", "\u017fet-cookie", "X-\xff",
}

// others are headers that only a Filter that names them selects.
var others = []string{
	"Vary", "Cache-Control", "Expires", "Server", "X-RateLimit-Remaining", "Access-Control-Allow-Origin",
	"Strict-Transport-Security", "WWW-Authenticate", "X-Api-Version",
}

// spellings returns several spellings of one name.
func spellings(name string) []string {
	return []string{name, http.CanonicalHeaderKey(name), strings.ToLower(name), strings.ToUpper(name)}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	everything := answer.Filter{}.Also(slices.Concat(allowed, never, others)...)
	shouted := answer.Filter{}
	for _, name := range slices.Concat(never, others) {
		shouted = shouted.Also(strings.ToUpper(name))
	}
	check := func(f answer.Filter, name string, want bool) {
		t.Helper()
		for _, spelling := range spellings(name) {
			expected := http.Header{}
			if want {
				expected = http.Header{http.CanonicalHeaderKey(name): {"v", "w"}}
			}
			if got := f.Replayable(http.Header{spelling: {"v", "w"}}); !reflect.DeepEqual(got, expected) {
				t.Errorf("%q: %v, want %v", spelling, got, expected)
			}
		}
	}
	for _, name := range allowed {
		check(answer.Filter{}, name, true)
		check(everything, name, true)
	}
	for _, name := range never {
		check(answer.Filter{}, name, false)
		check(everything, name, false)
		check(shouted, name, false)
	}
	for _, name := range others {
		check(answer.Filter{}, name, false)
		check(everything, name, true)
		check(shouted, name, true)
	}
}

func TestNeverReplayed(t *testing.T) {
	t.Parallel()
	for _, name := range never {
		for _, spelling := range spellings(name) {
			if !answer.NeverReplayed(spelling) {
				t.Errorf("%q may be replayed", spelling)
			}
		}
	}
	for _, name := range slices.Concat(allowed, others) {
		if answer.NeverReplayed(name) {
			t.Errorf("%q may not be replayed", name)
		}
	}
}

// Connection and Trailer name further fields that are not replayed.
func TestFilterNamesOfTheHeaderItself(t *testing.T) {
	t.Parallel()
	f := answer.Filter{}.Also("X-Hop", "X-Sum", "X-Kept")
	got := f.Replayable(http.Header{
		"connection": {"close, x-hop ,,LINK", "Content-Language\t"},
		"Trailer":    {"X-Sum"},
		"X-Hop":      {"1"}, "x-hop": {"2"}, "Link": {"3"}, "content-language": {"4"}, "X-Sum": {"5"},
		"X-Kept": {"6"},
	})
	if want := (http.Header{"X-Kept": {"6"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Two spellings of one name are merged, in a fixed order.
func TestFilterMergesSpellings(t *testing.T) {
	t.Parallel()
	h := http.Header{"link": {"4"}, "LINK": {"1"}, "Link": {"2", "3"}, "Etag": nil}
	for range 20 {
		got := answer.Filter{}.Replayable(h)
		if want := (http.Header{"Link": {"1", "2", "3", "4"}, "Etag": nil}); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

// The result is a copy, and Also does not change the Filter that it extends.
func TestFilterCopies(t *testing.T) {
	t.Parallel()
	h := http.Header{"Link": make([]string, 1, 8)}
	h["Link"][0] = "a"
	got := answer.Filter{}.Replayable(h)
	got["Link"] = append(got["Link"], "b")
	got["Link"][0] = "c"
	if h.Get("Link") != "a" || h["Link"][:2][1] != "" {
		t.Errorf("the handler's header has changed: %v", h["Link"][:2])
	}
	base := answer.Filter{}.Also("X-A", "X-B", "X-C")
	first, second := base.Also("X-1"), base.Also("X-2")
	all := http.Header{"X-1": {""}, "X-2": {""}}
	for name, f := range map[string]answer.Filter{"X-1": first, "X-2": second} {
		if got := f.Replayable(all); len(got) != 1 || got[name] == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := base.Replayable(all); len(got) != 0 {
		t.Errorf("the base lets through %v", got)
	}
}

// Answers of net/http's own functions are replayed completely.
func TestFilterKeepsWhatNetHTTPSets(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]http.HandlerFunc{
		"Error":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadRequest) },
		"NotFound": http.NotFound,
		"Redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/a", http.StatusSeeOther) },
	} {
		w := httptest.NewRecorder()
		handle(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
		if got := (answer.Filter{}).Replayable(w.Header()); !reflect.DeepEqual(got, w.Header()) {
			t.Errorf("%s: %v of %v", name, got, w.Header())
		}
	}
}

// No Filter selects a header that is NeverReplayed, in any spelling. The selected headers
// have the values of the handler. Filtering twice changes nothing.
func FuzzFilter(f *testing.F) {
	f.Add("Content-Type: a\nset-cookie: s=1", "Set-Cookie", "")
	f.Add("LINK: 1\nlink: 2\nX-Hop: 3", "x-hop", "close, X-Hop")
	f.Add("Trailer:X-Sum: 1\nTRANSFER-ENCODING: chunked\nSet-Cookie : a", "trailer:x-sum,Set-Cookie ,Transfer-Encoding", "\t,")
	f.Add("Vary: Origin\nDate: now\nContent-Length: 4\n\u017fet-cookie: a", "vary,date,content-length,\u017fet-cookie", "Vary")
	f.Fuzz(func(t *testing.T, text, also, connection string) {
		h := headerOf(text)
		h["Connection"] = append(h["Connection"], connection)
		filter := answer.Filter{}.Also(strings.Split(also, ",")...)
		kept := filter.Replayable(h)
		var given, got int
		for name, values := range h {
			if _, ok := kept[http.CanonicalHeaderKey(name)]; ok {
				given += len(values)
			}
		}
		for name, values := range kept {
			got += len(values)
			for _, forbidden := range never {
				if strings.EqualFold(strings.TrimSpace(name), strings.TrimSpace(forbidden)) {
					t.Errorf("%q is replayed", name)
				}
			}
			for listed := range strings.SplitSeq(connection, ",") {
				if strings.EqualFold(name, strings.Trim(listed, " \t")) {
					t.Errorf("%q is replayed, which Connection names", name)
				}
			}
			sameName := func(entry string) bool { return strings.EqualFold(name, entry) }
			if !slices.ContainsFunc(slices.Concat(allowed, strings.Split(also, ",")), sameName) {
				t.Errorf("%q is replayed, which no filter allows", name)
			}
		}
		if got != given {
			t.Errorf("%d values of %d are kept", got, given)
		}
		if again := filter.Replayable(kept); !reflect.DeepEqual(again, kept) {
			t.Errorf("filtered again %v is %v", kept, again)
		}
		a, b := answer.Answer{Header: kept}, answer.Answer{Header: filter.Replayable(h)}
		if !bytes.Equal(answer.Encode(nil, a), answer.Encode(nil, b)) {
			t.Error("the same header is written in two ways")
		}
	})
}
