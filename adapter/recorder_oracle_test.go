package adapter

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"reflect"
	"testing"
)

// A transcript is what a handler and its client observe in an exchange.
type transcript struct {
	Handler []string // the results of its calls
	Early   []string // informational answers
	Status  int
	Header  http.Header
	Body    string
	Trailer http.Header
	Broken  bool
}

func panicOf(f func()) (caught any) {
	defer func() { caught = recover() }()
	f()
	return nil
}

// A handler and its client observe the same on a Recorder as on net/http's writer, for
// answers that fit into a record and for longer ones.
func TestRecorderBehavesLikeNetHTTP(t *testing.T) {
	t.Parallel()
	for name, s := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := transcriptOf(t, s, func(h http.HandlerFunc) http.HandlerFunc { return h })
			for _, limit := range []int{plenty, 1, 40} {
				got := transcriptOf(t, s, func(h http.HandlerFunc) http.HandlerFunc { return recording(h, limit) })
				if !reflect.DeepEqual(got, want) {
					t.Errorf("with records of %d bytes:\n%+v, without recorder\n%+v", limit, got, want)
				}
			}
		})
	}
}

// transcriptOf serves a script behind a middleware, and returns its transcript.
func transcriptOf(t *testing.T, s script, middleware func(http.HandlerFunc) http.HandlerFunc) (seen transcript) {
	t.Helper()
	say := func(results ...any) { seen.Handler = append(seen.Handler, fmt.Sprint(results...)) }
	done := make(chan struct{})
	inner := middleware(func(w http.ResponseWriter, r *http.Request) { s(w, r, say) })
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		w.Header().Set("Date", "today")
		w.Header().Set("X-Outer", "outer")
		inner(w, r)
	})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
			seen.Early = append(seen.Early, fmt.Sprint(status, header))
			return nil
		},
	})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(r)
	<-done
	if err != nil {
		seen.Broken = true
		return seen
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(bufio.NewReader(answer.Body))
	seen.Status, seen.Header, seen.Body = answer.StatusCode, answer.Header, string(body)
	seen.Trailer, seen.Broken = answer.Trailer, err != nil
	return seen
}
