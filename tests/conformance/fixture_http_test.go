package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// The route that HTTP frameworks serve, in its group.
const (
	groupPath = "/group"
	routePath = "/route"
)

// routeMethods are the methods of the route.
var routeMethods = []string{http.MethodPost, http.MethodGet}

// httpRow returns an outcome as the problem document shows it.
func httpRow(o core.Refusal) outcome {
	v := outcome{status: o.HTTP, code: o.Code}
	if o.Code == "canceled" {
		v.code = "" // the connection is closed before a client reads it
	}
	v.retryAfter = (o.RetryAfter + time.Second - 1).Truncate(time.Second)
	return v
}

// An httpServer is a client of a handler on a real connection.
type httpServer struct{ *liveServer }

// A liveServer serves on a real connection.
type liveServer struct {
	URL      string
	Listener net.Listener
	Config   *http.Server // nil without net/http
	client   *http.Client
}

// Client returns a client of the server.
func (s *liveServer) Client() *http.Client { return s.client }

// serveHTTP serves a handler until the end of the test. It does not log the handler's panics.
func serveHTTP(t *testing.T, h http.Handler) server {
	t.Helper()
	return httpServer{startHTTP(t, h)}
}

func startHTTP(t *testing.T, h http.Handler) *liveServer {
	t.Helper()
	if on, isFiber := h.(fiberApp); isFiber {
		return listenFiber(t, on.app)
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return &liveServer{s.URL, s.Listener, s.Config, s.Client()}
}

func (s httpServer) send(ctx context.Context, r request) answer {
	return s.open(ctx, r).rest()
}

func (s httpServer) open(ctx context.Context, r request) stream {
	var body io.Reader = http.NoBody
	if r.body != "" {
		text, err := json.Marshal(map[string]string{"id": r.body})
		if err != nil {
			return &httpStream{err: err}
		}
		body = bytes.NewReader(text)
	}
	method := http.MethodPost // so that the client never resends the request
	if r.reads {
		method = http.MethodGet
	}
	sent, err := http.NewRequestWithContext(ctx, method, s.URL+groupPath+routePath, body)
	if err != nil {
		return &httpStream{err: err}
	}
	sent.Header.Set("Content-Type", "application/json")
	for _, value := range r.keys {
		sent.Header.Add("X-Key", value)
	}
	for _, value := range r.idempotencyKeys {
		sent.Header.Add("Idempotency-Key", value)
	}
	if r.second != "" {
		sent.Header.Set("X-Second", r.second)
	}
	got, err := s.Client().Do(sent) //nolint:bodyclose // rest does
	if err != nil {
		return &httpStream{err: err}
	}
	return &httpStream{response: got, body: bufio.NewReader(got.Body)}
}

// An httpStream is an answer after its header. Its pieces are lines.
type httpStream struct {
	response *http.Response
	body     *bufio.Reader
	err      error
}

func (s *httpStream) next() (string, error) {
	if s.err != nil {
		return "", s.err
	}
	line, err := s.body.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

func (s *httpStream) rest() answer {
	if s.err != nil {
		return answer{err: s.err}
	}
	defer func() { _ = s.response.Body.Close() }()
	body, err := io.ReadAll(s.body)
	if err != nil {
		return answer{err: err}
	}
	header := s.response.Header
	got := answer{
		ok:   s.response.StatusCode/100 == 2,
		text: string(body),
		raw:  fmt.Sprint(s.response.Status, header, string(body)),
	}
	got.status = s.response.StatusCode
	if seconds, err := strconv.Atoi(header.Get("Retry-After")); err == nil {
		got.retryAfter = time.Duration(seconds) * time.Second
	}
	if header.Get("Content-Type") == "application/problem+json" && header.Get("Cache-Control") == "no-store" {
		if problem, ok := problemIn(body); ok && problem.Status == got.status {
			got.code = problem.Code
		}
	}
	return got
}

// problemType is the WithProblemType of each case.
const problemType = "https://api.example.com/errors#"

// A problem is a problem document.
type problem struct {
	Type, Title, Detail, Code, First string
	Status                           int
}

// problemIn returns the problem document of an answer, and whether it is complete: its type and its
// title are those of the code.
func problemIn(body []byte) (p problem, ok bool) {
	err := json.Unmarshal(body, &p)
	name := strings.ReplaceAll(p.Code, "_", " ")
	return p, err == nil && name != "" && p.Type == problemType+p.Code && strings.EqualFold(p.Title, name) && p.Detail != ""
}

// httpHandling holds what calls on all HTTP frameworks share: the parts that the frameworks
// leave to net/http.
type httpHandling struct {
	w http.ResponseWriter
	r *http.Request
}

func (c httpHandling) Context() context.Context { return c.r.Context() }

func (c httpHandling) Body() (string, error) {
	var body struct{ ID string }
	err := json.NewDecoder(c.r.Body).Decode(&body)
	return body.ID, err
}

func (c httpHandling) Send(piece string) error {
	if _, err := io.WriteString(c.w, piece+"\n"); err != nil {
		return err
	}
	return http.NewResponseController(c.w).Flush()
}

func (c httpHandling) Hijack(text string) error {
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
	return err
}
