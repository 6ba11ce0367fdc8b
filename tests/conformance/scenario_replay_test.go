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

	"github.com/reqlock/reqlock/core"
)

// replayScenarios test that a copy gets the answer of the first request.
func replayScenarios() []testCase {
	return []testCase{
		{"status, headers and body", everywhere, wholeAnswers},
		{"a compressed body keeps its encoding", everywhere, compressedBody},
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
	"a copy": func(t invocation) {
		_, _ = io.Copy(t, strings.NewReader(strings.Repeat("copy", 3000)))
	},
}

func wholeAnswers(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) { answers[t.r.Header.Get("X-Answer")](t) }})
	for name := range answers {
		request := httpRequest{keys: []string{`"` + name + `"`}, header: http.Header{"X-Answer": {name}}}
		first := s.do(e.Context(), request)
		s.replays(first, request)
		s.replays(first, request)
		if first.err != nil || first.header["Idempotent-Replayed"] != nil {
			e.Errorf("%s: %+v", name, first)
		}
	}
}

func compressedBody(e *environment) {
	var body bytes.Buffer
	w := gzip.NewWriter(&body)
	_, _ = io.WriteString(w, strings.Repeat("paid", 100))
	_ = w.Close()
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		t.Header().Set("Content-Encoding", "gzip")
		t.Header().Set("Content-Type", "text/plain")
		_, _ = t.Write(body.Bytes())
	}})
	request := payment("gzip")
	request.header = http.Header{"Accept-Encoding": {"gzip"}} // so that the client does not unpack it
	first := s.runsWith(http.StatusOK, request)
	if s.replays(first, request); first.body != body.String() || first.header.Get("Content-Encoding") != "gzip" {
		e.Errorf("the first answer is %+v", first)
	}
}

// An answer that is one byte too long is not stored, but its request is complete.
func longestAnswer(e *environment) {
	const limit = 4096
	var length int
	s := e.serveEndpoint(endpoint{
		options: []core.Option{core.WithMaxRecord(limit)},
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

// Even if its record cannot be read, the request is complete.
func unreadableRecords(e *environment) {
	checked := func(record []byte) []byte {
		sum := crc32.Checksum(record, crc32.MakeTable(crc32.Castagnoli))
		return binary.BigEndian.AppendUint32(record, sum)
	}
	s := e.serveEndpoint(endpoint{})
	for name, change := range map[string]func(record []byte) []byte{
		"cut":       func(record []byte) []byte { return record[:len(record)-1] },
		"empty":     func([]byte) []byte { return nil },
		"flipped":   func(record []byte) []byte { record[7] ^= 1; return record },
		"longer":    func(record []byte) []byte { return append(record, 0) },
		"old":       func(record []byte) []byte { record[0] = 0; return checked(record[:len(record)-4]) },
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
	const answer, changed = "p", "changed"
	for _, name := range e.names(e.Context(), ":r") {
		if e.rdb.HExists(e.Context(), name, changed).Val() {
			continue
		}
		record, err := e.rdb.HGet(e.Context(), name, answer).Bytes()
		if err != nil {
			e.Errorf("HGET: %v", err)
		}
		record = change(slices.Clone(record))
		if err := e.rdb.HSet(e.Context(), name, answer, record, changed, "1").Err(); err != nil {
			e.Errorf("HSET: %v", err)
		}
	}
}
