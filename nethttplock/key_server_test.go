package nethttplock_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// serve starts a server that reads a key of each request, as a middleware does, and calls
// the handler.
func serve(t *testing.T, key nethttplock.Key, handle func(http.ResponseWriter, *http.Request, string, error)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k, err := key.Read(r)
		handle(w, r, k.Raw(), err)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// exchange sends bytes on a connection and returns the statuses of all answers until the
// server closes it.
func exchange(t *testing.T, addr, request string) (statuses []int) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	go func() { _, _ = io.WriteString(conn, request) }() // the server may not read all
	answers := bufio.NewReader(conn)
	for {
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				t.Error("the server left the connection hanging")
			}
			return statuses
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		statuses = append(statuses, answer.StatusCode)
	}
}

const (
	post = "POST / HTTP/1.1\r\nHost: h\r\n"
	next = "GET /next HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
)

func chunked(body, trailer string) string {
	return fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n%s\r\n", len(body), body, trailer)
}

func sized(body string) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// The handler gets the body of a real connection with its length and its trailer, and the
// connection serves the next request.
func TestBodyOnAConnection(t *testing.T) {
	t.Parallel()
	body := `{"id":"a","pad":"` + strings.Repeat("x", 100_000) + `"}`
	for name, test := range map[string]struct {
		request string
		length  int64
		trailer string
	}{
		"sized":             {post + sized(body), int64(len(body)), ""},
		"chunked":           {post + chunked(body, ""), -1, ""},
		"declared trailer":  {post + "Trailer: X-Sum\r\n" + chunked(body, "X-Sum: 7\r\n"), -1, "7"},
		"undeclared":        {post + chunked(body, "X-Sum: 7\r\n"), -1, "7"},
		"expects a go-on":   {post + "Expect: 100-continue\r\n" + sized(body), int64(len(body)), ""},
		"expects, chunked ": {post + "Expect: 100-continue\r\n" + chunked(body, ""), -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := serve(t, nethttplock.JSONField("id"),
				func(w http.ResponseWriter, r *http.Request, key string, err error) {
					if r.URL.Path == "/next" {
						w.WriteHeader(http.StatusTeapot)
						return
					}
					check(t, key, err, "a", nil)
					r = r.WithContext(r.Context()) // as a middleware does
					if got := readAll(t, r); got != body {
						t.Errorf("the handler reads %d bytes", len(got))
					}
					if r.ContentLength != test.length || r.Trailer.Get("X-Sum") != test.trailer {
						t.Errorf("length %d, trailer %v", r.ContentLength, r.Trailer)
					}
					_ = r.Body.Close()
					w.WriteHeader(http.StatusAccepted)
				})
			got := exchange(t, addr, test.request+next)
			want := []int{http.StatusAccepted, http.StatusTeapot}
			if strings.Contains(test.request, "Expect") {
				want = append([]int{http.StatusContinue}, want...)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("statuses %v, want %v", got, want)
			}
		})
	}
}

// The rest of a refused body is never parsed as a request.
func TestRefusedBodyOnAConnection(t *testing.T) {
	t.Parallel()
	// The end of the body looks like a request.
	body := strings.Repeat("x", 300<<10) + " /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
	for name, request := range map[string]string{
		"sized":            post + sized(body),
		"chunked":          post + chunked(body, ""),
		"sized, expects":   post + "Expect: 100-continue\r\n" + sized(body),
		"chunked, expects": post + "Expect: 100-continue\r\n" + chunked(body, ""),
	} {
		for _, closes := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", closed"}[closes], func(t *testing.T) {
				t.Parallel()
				addr := serve(t, within(1000, nethttplock.JSONField("id")),
					func(w http.ResponseWriter, r *http.Request, _ string, err error) {
						if r.Method != http.MethodPost {
							t.Errorf("the body came as a request: %.20q %s", r.Method, r.URL)
						}
						if !errors.Is(err, core.ErrBodyTooLarge) {
							t.Errorf("error %v", err)
						}
						if closes {
							_ = r.Body.Close()
						}
						w.WriteHeader(http.StatusRequestEntityTooLarge)
					})
				for _, status := range exchange(t, addr, request+next) {
					if status != http.StatusRequestEntityTooLarge && status != http.StatusContinue {
						t.Errorf("status %d", status)
					}
				}
			})
		}
	}
}

// A client that waits for 100 (Continue) and announces a body over the limit gets its
// answer instead.
func TestNoContinueForTooLarge(t *testing.T) {
	t.Parallel()
	addr := serve(t, within(10, nethttplock.JSONField("id")), func(w http.ResponseWriter, _ *http.Request, key string, err error) {
		check(t, key, err, "", core.ErrBodyTooLarge)
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	})
	transport := &http.Transport{ExpectContinueTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	body := &source{Reader: strings.NewReader("12345678901")}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr, body)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = 11
	r.Header.Set("Expect", "100-continue")
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusRequestEntityTooLarge || body.read != 0 {
		t.Errorf("status %d after %d bytes were sent", answer.StatusCode, body.read)
	}
}

// A body that an outer http.MaxBytesHandler cuts off is too large, too.
func TestMaxBytesHandler(t *testing.T) {
	t.Parallel()
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, err := within(1000, nethttplock.JSONField("id")).Read(r)
		check(t, key.Raw(), err, "", core.ErrBodyTooLarge)
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	})
	server := httptest.NewServer(http.MaxBytesHandler(inner, 10))
	defer server.Close()
	got := exchange(t, server.Listener.Addr().String(), post+chunked(`{"id":"a","n":7}`, "")+next)
	if fmt.Sprint(got) != "[413]" {
		t.Errorf("statuses %v", got)
	}
}

func TestBrokenBodyOnAConnection(t *testing.T) {
	t.Parallel()
	addr := serve(t, within(1000, nethttplock.JSONField("id")), func(w http.ResponseWriter, _ *http.Request, key string, err error) {
		check(t, key, err, "", core.ErrInvalidKey)
		w.WriteHeader(http.StatusBadRequest)
	})
	got := exchange(t, addr, post+"Transfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"\r\nzz\r\n"+next)
	if fmt.Sprint(got) != "[400]" {
		t.Errorf("statuses %v", got)
	}
}
