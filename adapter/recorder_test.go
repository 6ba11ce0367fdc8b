package adapter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/reqlock/reqlock/internal/answer"
)

// The stored part of an answer, and which answers cannot be replayed.
func TestResultHasThePartThatIsStored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler    func(w *Recorder)
		want       answer.Answer
		unreplayed bool
	}{
		"nothing": {
			handler: func(*Recorder) {},
			want:    answer.Answer{Status: 200, Header: http.Header{}},
		},
		"a header and nothing else": {
			handler: func(w *Recorder) { w.Header().Set("Location", "/1") },
			want:    answer.Answer{Status: 200, Header: http.Header{"Location": {"/1"}}},
		},
		"all of an answer": {
			handler: func(w *Recorder) {
				w.Header()["Link"] = []string{"</b>", "</a>"}
				w.Header().Set("Set-Cookie", "session=1")
				w.Header().Set("X-Own", "1")
				w.WriteHeader(http.StatusCreated)
				w.Header().Set("Etag", "late")
				_, _ = w.WriteString("bo")
				_, _ = w.ReadFrom(strings.NewReader("dy"))
			},
			want: answer.Answer{Status: 201, Header: http.Header{"Link": {"</b>", "</a>"}}, Body: []byte("body")},
		},
		"headers of those outside": {
			handler: func(w *Recorder) {
				w.Header().Set("Content-Encoding", "gzip") // as before
				w.Header().Del("X-Content-Type-Options")
				w.Header().Add("X-Limit", "more")
				w.WriteHeader(http.StatusOK)
			},
			want: answer.Answer{Status: 200, Header: http.Header{"X-Limit": {"outer", "more"}}},
		},
		"an empty Content-Type, on purpose": {
			handler: func(w *Recorder) { w.Header()["Content-Type"] = nil },
			want:    answer.Answer{Status: 200, Header: http.Header{"Content-Type": nil}},
		},
		"informational answers": {
			handler: func(w *Recorder) {
				w.WriteHeader(http.StatusEarlyHints)
				w.WriteHeader(http.StatusNotFound)
			},
			want: answer.Answer{Status: 404, Header: http.Header{}},
		},
		"no content": {
			handler: func(w *Recorder) {
				w.WriteHeader(http.StatusNoContent)
				_, _ = w.Write([]byte("body"))
			},
			want: answer.Answer{Status: 204, Header: http.Header{}},
		},
		"a copy that breaks off": {
			handler: func(w *Recorder) {
				_, _ = io.Copy(w, io.MultiReader(strings.NewReader("body"), iotest.ErrReader(errors.New("broken"))))
			},
			want: answer.Answer{Status: 200, Header: http.Header{}, Body: []byte("body")},
		},
		"less than declared": {
			handler: func(w *Recorder) {
				w.Header().Set("Content-Length", "5")
				_, _ = w.Write([]byte("body"))
			},
			unreplayed: true,
		},
		"as much as declared": {
			handler: func(w *Recorder) {
				w.Header().Set("Content-Length", "4")
				_, _ = w.Write([]byte("body"))
			},
			want: answer.Answer{Status: 200, Header: http.Header{}, Body: []byte("body")},
		},
		"two statuses": {
			handler: func(w *Recorder) {
				w.WriteHeader(http.StatusOK)
				w.WriteHeader(http.StatusConflict)
			},
			want: answer.Answer{Status: 200, Header: http.Header{}},
		},
		"a status after the end": {
			handler: func(w *Recorder) {
				w.close()
				w.WriteHeader(http.StatusConflict)
			},
			want: answer.Answer{Status: 200, Header: http.Header{}},
		},
		"nothing of what is declared, in an answer without body": {
			handler: func(w *Recorder) {
				w.Header().Set("Content-Length", "5")
				w.WriteHeader(http.StatusNotModified)
			},
			want: answer.Answer{Status: 304, Header: http.Header{}},
		},
		"announced trailers": {
			handler: func(w *Recorder) {
				w.Header().Set("Trailer", "Etag")
				_, _ = w.Write([]byte("body"))
				w.Header().Set("Etag", "1")
			},
			unreplayed: true,
		},
		"announced trailers, and nothing else": {
			handler:    func(w *Recorder) { w.Header().Set("Trailer", "Etag") },
			unreplayed: true,
		},
		"a trailer": {
			handler: func(w *Recorder) {
				_, _ = w.Write([]byte("body"))
				w.Header().Set(http.TrailerPrefix+"Etag", "1")
			},
			unreplayed: true,
		},
		"a flush":                     {handler: func(w *Recorder) { w.Flush() }, unreplayed: true},
		"a flush by a controller":     {handler: func(w *Recorder) { _ = http.NewResponseController(w).Flush() }, unreplayed: true},
		"a switch to other protocols": {handler: func(w *Recorder) { w.WriteHeader(http.StatusSwitchingProtocols) }, unreplayed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outer := httptest.NewRecorder()
			outer.Header().Set("Content-Encoding", "gzip")
			outer.Header().Set("X-Content-Type-Options", "nosniff")
			outer.Header().Set("X-Limit", "outer")
			rec := newRecorder(outer, answer.Filter{}.Also("X-Limit"), plenty)
			test.handler(rec)
			rec.close()
			got, replayable := rec.result(0)
			if replayable == test.unreplayed {
				t.Errorf("replayable: %v", replayable)
			}
			if replayable && !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

// Headers that describe the answer are stored even if outer middlewares have set them.
// Headers that outer middlewares set for a copy are replaced.
func TestWhatIsOfTheAnswerAlone(t *testing.T) {
	t.Parallel()
	outer := httptest.NewRecorder()
	outer.Header().Set("Content-Type", "text/plain")
	outer.Header().Set("Etag", "outer")
	outer.Header().Set("Content-Encoding", "gzip")
	rec := newRecorder(outer, answer.Filter{}, plenty)
	rec.Header().Set("Content-Type", "text/plain")
	rec.Header().Del("Etag")
	rec.WriteHeader(http.StatusOK)
	rec.close()
	answer, _ := rec.result(0)
	if want := (http.Header{"Content-Type": {"text/plain"}}); !reflect.DeepEqual(answer.Header, want) {
		t.Errorf("kept %v, want %v", answer.Header, want)
	}
	copied := httptest.NewRecorder()
	copied.Header().Set("Content-Type", "text/html")
	copied.Header().Set("Etag", "of the copy")
	copied.Header().Set("Content-Encoding", "br")
	copied.Header().Set("X-Request-Id", "2")
	(&Exchange{answer: answer}).Replay(copied)
	want := http.Header{
		"Content-Type": {"text/plain"}, "Content-Encoding": {"br"}, "X-Request-Id": {"2"},
		"Idempotent-Replayed": {"true"}, "Cache-Control": {"no-store"},
	}
	if got := copied.Header(); !reflect.DeepEqual(got, want) {
		t.Errorf("the copy has %v, want %v", got, want)
	}
}

// An answer that fits exactly into a record is stored. An answer that is one byte longer is
// sent at once.
func TestAnswerOverTheLimitIsSentAtOnce(t *testing.T) {
	t.Parallel()
	header := http.Header{"Content-Type": {"text/plain"}, "Location": {"/payments/7"}}
	body := bytes.Repeat([]byte("b"), 3000)
	limit := len(answer.Encode(nil, answer.Answer{Status: 201, Header: header, Body: body}))
	for _, pieces := range []int{1, 7, 3000} {
		for more := range 3 {
			t.Run(fmt.Sprintf("%d pieces, %d bytes over", pieces, more), func(t *testing.T) {
				t.Parallel()
				outer := httptest.NewRecorder()
				rec := newRecorder(outer, answer.Filter{}, limit)
				apply(rec.Header(), nil, header)
				rec.WriteHeader(http.StatusCreated)
				for i := range pieces {
					from, to := i*len(body)/pieces, (i+1)*len(body)/pieces
					if n, err := rec.Write(body[from:to]); n != to-from || err != nil {
						t.Fatalf("Write: %d, %v", n, err)
					}
				}
				for range more {
					_, _ = rec.Write([]byte("b"))
				}
				rec.close()
				if rec.IsSent() != (more > 0) {
					t.Errorf("passed through: %v", rec.IsSent())
				}
				if rec.IsSent() && rec.body != nil {
					t.Errorf("%d bytes are kept although they were sent", len(rec.body))
				}
				sent := outer.Body.Len()
				got, replayable := rec.result(0)
				switch {
				case more == 0 && (!replayable || sent != 0 || len(answer.Encode(nil, got)) != limit):
					t.Errorf("at the limit: replayable %v, %d bytes sent", replayable, sent)
				case more > 0 && (replayable || sent != len(body)+more):
					t.Errorf("over the limit: replayable %v, %d bytes sent", replayable, sent)
				}
				rec.send()
				if got := outer.Body.String(); got != string(body)+strings.Repeat("b", more) || outer.Code != 201 {
					t.Errorf("%d with %d bytes", outer.Code, len(got))
				}
			})
		}
	}
}

// The answer of a handler with a lock may be a refusal. So its first bytes are kept, but not more.
func TestStreamIsKeptUpToTheLongestRefusal(t *testing.T) {
	t.Parallel()
	rec := newRecorder(httptest.NewRecorder(), answer.Filter{}, plenty)
	rec.entered = 1
	rec.Flush()
	for range 3 {
		_, _ = rec.Write(make([]byte, maxRefusal/2))
	}
	if len(rec.body) != maxRefusal || !rec.more {
		t.Errorf("%d bytes are kept, more: %v", len(rec.body), rec.more)
	}
}

func TestWritesAfterTheHandlerHaveNoEffect(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{plenty, 1} {
		outer := httptest.NewRecorder()
		rec := newRecorder(outer, answer.Filter{}, limit)
		_, _ = rec.Write([]byte("body"))
		rec.close()
		var late sync.WaitGroup
		for range 8 {
			late.Go(func() {
				rec.WriteHeader(http.StatusTeapot)
				rec.Flush()
				_, err := rec.Write([]byte("late"))
				_, copied := rec.ReadFrom(strings.NewReader("late"))
				_, _, hijacked := rec.Hijack()
				for _, err := range []error{err, copied, hijacked, rec.FlushError()} {
					if !errors.Is(err, errReturned) {
						t.Errorf("late: %v", err)
					}
				}
			})
		}
		rec.send()
		late.Wait()
		if outer.Body.String() != "body" || outer.Code != 200 {
			t.Errorf("%d %q", outer.Code, outer.Body)
		}
	}
}
