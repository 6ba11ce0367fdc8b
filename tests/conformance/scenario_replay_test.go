package conformance

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// replayScenarios test that a copy gets the answer of the first request.
func replayScenarios() []testCase {
	return []testCase{
		{"status, headers and body", everywhere, wholeAnswers},
		{"an answer as long as a record may be, and a longer one", everywhere, longestAnswer},
		{"a damaged record, and one of another version or kind", everywhere, unreadableRecords},
	}
}

// answers are answers of handlers that are replayed unchanged.
var answers = map[string]func(t invocation){
	"nothing at all": func(invocation) {},
	"a body without a status": func(t invocation) {
		_, _ = io.WriteString(t, "<html>paid</html>")
	},
	"created": func(t invocation) {
		t.Header().Set("Content-Type", "application/json; charset=utf-8")
		t.Header().Set("Location", "/payments/1")
		t.Header().Set("Etag", `"1"`)
		t.WriteHeader(http.StatusCreated)
		_, _ = t.Write([]byte(`{"id":1}`))
	},
	"accepted, without a body": func(t invocation) { t.WriteHeader(http.StatusAccepted) },
	"no content":               func(t invocation) { t.WriteHeader(http.StatusNoContent) },
	"a status by the framework's own means": func(t invocation) {
		t.bare(http.StatusResetContent)
	},
	"a redirection": func(t invocation) { http.Redirect(t, t.r, "/receipts/1", http.StatusSeeOther) },
	"a refusal":     func(t invocation) { http.Error(t, "no funds", http.StatusPaymentRequired) },
	"a long body in many pieces": func(t invocation) {
		for i := range 5000 {
			_, _ = fmt.Fprintln(t, "line", i)
		}
	},
	"a body of any bytes": func(t invocation) {
		_, _ = t.Write([]byte("\x00\xff\r\n\r\n0\r\n"))
	},
	"several values of a header": func(t invocation) {
		t.Header()["Link"] = []string{"</b>", "</a>", "</b>", ""}
		t.WriteHeader(http.StatusCreated)
	},
	"headers after the status": func(t invocation) {
		t.Header().Set("Etag", "1")
		t.WriteHeader(http.StatusCreated)
		_, _ = t.Write([]byte("paid"))
		t.Header().Set("Etag", "2")
		t.Header().Set("Location", "/late")
	},
	"a compressed body": func(t invocation) {
		t.Header().Set("Content-Encoding", "gzip")
		t.Header().Set("Content-Type", "text/plain")
		w := gzip.NewWriter(t)
		_, _ = io.WriteString(w, strings.Repeat("paid", 100))
		_ = w.Close()
	},
	"a copy": func(t invocation) {
		_, _ = io.Copy(t, strings.NewReader(strings.Repeat("copy", 3000)))
	},
}

func wholeAnswers(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) { answers[t.r.Header.Get("X-Answer")](t) }})
	for name := range answers {
		request := httpRequest{keys: []string{`"` + name + `"`}, header: http.Header{
			"X-Answer": {name}, "Accept-Encoding": {"identity"}, // so that the client unpacks nothing
		}}
		first := s.do(e.Context(), request)
		s.replays(first, request)
		s.replays(first, request)
		if first.err != nil || first.header["Idempotent-Replayed"] != nil || first.header.Get("Location") == "/late" {
			e.Errorf("%s: %+v", name, first)
		}
	}
}

// An answer that is one byte too long is not stored, but its request is complete.
func longestAnswer(e *environment) {
	const limit = 4096
	var length int
	s := e.serveEndpoint(endpoint{
		options: []core.Option{core.WithMaxAnswer(limit)},
		handler: func(t invocation) {
			t.Header().Set("Content-Type", "text/plain")
			_, _ = t.Write(bytes.Repeat([]byte("b"), length))
		},
	})
	// The record holds its frame and the status, a header and the body.
	length = limit - 2 - 4 - 2 - len("\x01\x0cContent-Type\x01\x0atext/plain")
	s.replays(s.runsWith(http.StatusOK, payment("longest")), payment("longest"))
	length++
	if first := s.runsWith(http.StatusOK, payment("longer")); len(first.body) != length {
		e.Errorf("the first answer has %d bytes", len(first.body))
	}
	s.refuses(core.ErrUnreplayable, payment("longer"))
}

// Even if its record cannot be read, the request is complete. internal/answer has all kinds
// of damage.
func unreadableRecords(e *environment) {
	checked := func(record []byte) []byte {
		sum := crc32.Checksum(record, crc32.MakeTable(crc32.Castagnoli))
		return binary.BigEndian.AppendUint32(record, sum)
	}
	s := e.serveEndpoint(endpoint{})
	for name, change := range map[string]func(record []byte) []byte{
		"cut":       func(record []byte) []byte { return record[:len(record)-1] },
		"newer":     func(record []byte) []byte { record[0] = 2; return checked(record[:len(record)-4]) },
		"of a call": func(record []byte) []byte { record[1] = 2; return checked(record[:len(record)-4]) },
	} {
		request := httpRequest{keys: []string{`"` + name + `"`}}
		first := s.runsWith(http.StatusCreated, request)
		s.replays(first, request)
		e.changeRecord(change)
		s.refuses(core.ErrUnreplayable, request)
	}
}

// changeRecord changes the one stored answer in Redis so that it cannot be read.
func (e *environment) changeRecord(change func(record []byte) []byte) {
	e.Helper()
	const changed = "x" // no answer has this field
	for _, name := range e.names(e.Context(), ":r") {
		record := storetest.RecordAt(e, e.rdb, name)
		if record[changed] == "" {
			storetest.ChangeRecord(e, e.rdb, name, map[string]string{"p": string(change([]byte(record["p"]))), changed: "1"})
		}
	}
}

// headerScenarios test which headers of an answer its copies have.
func headerScenarios() []testCase {
	return []testCase{
		{"cookies and headers of a single exchange are not replayed", everywhere, neverReplayed},
		{"headers of outer middlewares belong to the copy", everywhere, headersOutside},
		{"the application adds headers to those that are replayed", everywhere, moreHeaders},
		{"early hints are sent, and are not replayed", earlyHint, earlyHints},
	}
}

// theDate is not the date of a test.
const theDate = "Thu, 01 Jan 1970 00:00:00 GMT"

func neverReplayed(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		for name, value := range map[string]string{
			"Set-Cookie": "session=secret", "Date": theDate, "Server-Timing": "db;dur=1",
			"Traceparent": "00-1-1-01", "X-Request-Id": "first", "X-Ratelimit-Remaining": "7",
			"Www-Authenticate": "Basic", "Vary": "Accept", "Keep-Alive": "timeout=5", "Expires": "0",
			"Connection": "Content-Language", "Content-Language": "en",
		} {
			t.Header().Set(name, value)
		}
		t.WriteHeader(http.StatusCreated)
		_, _ = t.Write([]byte("paid"))
	}})
	first := s.runsWith(http.StatusCreated, payment("never"))
	if first.header.Get("Set-Cookie") == "" || first.header.Get("X-Request-Id") != "first" {
		e.Errorf("the first answer lacks its headers: %v", first.header)
	}
	again := s.do(e.Context(), payment("never"))
	if again.body != "paid" || again.header.Get("Date") == theDate {
		e.Errorf("the copy got %+v", again)
	}
	for name := range again.header {
		if !slices.Contains([]string{"Cache-Control", "Content-Length", "Content-Type", "Date", "Idempotent-Replayed"}, name) {
			e.Errorf("the copy has the header %s: %q", name, again.header[name])
		}
	}
}

// Outer middlewares set some headers for each exchange: the copy has its own, even if they
// could be replayed. Headers that describe the answer are those of the answer.
func headersOutside(e *environment) {
	var requests atomic.Int64
	s := e.serveEndpoint(endpoint{
		outer: func(w http.ResponseWriter, _ *http.Request) bool {
			n := fmt.Sprint(requests.Add(1))
			w.Header().Set("X-Request-Id", n)
			w.Header().Set("Access-Control-Allow-Origin", n)
			w.Header().Set("X-Content-Type-Options", n)
			w.Header().Set("Content-Language", n)
			w.Header().Set("Etag", n)
			w.Header().Set("Link", n)
			return true
		},
		handler: func(t invocation) {
			t.Header().Set("Etag", "the handler's")
			t.Header().Add("Link", "the handler's")
			t.WriteHeader(http.StatusCreated)
		},
	})
	first := s.runsWith(http.StatusCreated, payment("outside"))
	again := s.do(e.Context(), payment("outside"))
	for name, want := range map[string][]string{
		"X-Request-Id": {"2"}, "Access-Control-Allow-Origin": {"2"}, "X-Content-Type-Options": {"2"},
		"Content-Language": {"1"}, "Etag": {"the handler's"}, "Link": {"1", "the handler's"},
	} {
		if got := again.header[name]; !slices.Equal(got, want) {
			e.Errorf("%s of the copy is %q, not %q; of the first %q", name, got, want, first.header[name])
		}
	}
}

func moreHeaders(e *environment) {
	s := e.serveEndpoint(endpoint{
		own: ownOptions{replayed: []string{"x-payment", "Cache-Control"}},
		handler: func(t invocation) {
			t.Header().Set("X-Payment", "7")
			t.Header().Set("X-Other", "7")
			t.Header().Set("Cache-Control", "private")
			t.WriteHeader(http.StatusCreated)
		},
	})
	first := s.runsWith(http.StatusCreated, payment("more"))
	again := s.do(e.Context(), payment("more"))
	if h := again.header; first.header.Get("Cache-Control") != "private" || h.Get("X-Payment") != "7" || h.Get("X-Other") != "" || h.Get("Cache-Control") != "private" {
		e.Errorf("the copy has %v", h)
	}
}
