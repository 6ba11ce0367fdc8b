package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/nethttplock"
)

// nowaitHeader is the header of a request that does not wait.
const nowaitHeader = "X-No-Wait"

func serveNetHTTP(s *service, l net.Listener) (stop func(context.Context)) {
	mux := http.NewServeMux()
	for route, policy := range policies {
		pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			attempt, _ := core.AttemptFromContext(r.Context())
			s.payHTTP(w, r, attempt)
		})
		policy := core.WithRerunUnknown(policy)
		nowait := nethttplock.Idempotent(s.locks, nethttplock.IdempotencyKey(), policy)(pay)
		waits := nethttplock.Idempotent(s.locks, nethttplock.IdempotencyKey(), policy, core.WithWait(s.Wait))(pay)
		mux.HandleFunc("POST /"+route, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(nowaitHeader) != "" {
				nowait.ServeHTTP(w, r)
				return
			}
			waits.ServeHTTP(w, r)
		})
	}
	return serveHTTP(mux, l)
}

func serveGin(s *service, l net.Listener) (stop func(context.Context)) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	for route, policy := range policies {
		policy := core.WithRerunUnknown(policy)
		nowait := ginlock.Idempotent(s.locks, ginlock.IdempotencyKey(), policy)
		waits := ginlock.Idempotent(s.locks, ginlock.IdempotencyKey(), policy, core.WithWait(s.Wait))
		engine.POST("/"+route, func(c *gin.Context) {
			if c.GetHeader(nowaitHeader) != "" {
				nowait(c)
				return
			}
			waits(c)
		}, func(c *gin.Context) {
			attempt, _ := core.AttemptFromContext(c)
			s.payHTTP(c.Writer, c.Request, attempt)
		})
	}
	return serveHTTP(engine, l)
}

// serveHTTP serves with buffers that are smaller than a long answer.
func serveHTTP(h http.Handler, l net.Listener) (stop func(context.Context)) {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: patience,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			_ = c.(*net.TCPConn).SetWriteBuffer(socketBuffer)
			return ctx
		},
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	return func(ctx context.Context) {
		_ = server.Shutdown(ctx)
		<-done
	}
}

func (s *service) payHTTP(w http.ResponseWriter, r *http.Request, attempt *core.Attempt) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	made, err := s.pay(r.Context(), attempt, r.Header.Get("Idempotency-Key"), body)
	switch {
	case errors.Is(err, errTryAgain):
		w.WriteHeader(http.StatusServiceUnavailable)
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
	default:
		w.Header().Set("Location", "/charges/"+made.Charge)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(made)
	}
}

func askHTTP(ctx context.Context, addr string, q request) (a answer, err error) {
	transport := &http.Transport{DisableKeepAlives: true}
	if q.reading != nil {
		transport.DialContext = dialSmall
	}
	defer transport.CloseIdleConnections()
	text, err := json.Marshal(payment{q.extra})
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s/%s", addr, q.policy), bytes.NewReader(text))
	if err != nil {
		return a, err
	}
	r.Header.Set("Idempotency-Key", q.key)
	if q.nowait {
		r.Header.Set(nowaitHeader, "1")
	}
	got, err := transport.RoundTrip(r)
	if err != nil {
		return a, err
	}
	defer func() { _ = got.Body.Close() }()
	a.Status, a.Location = got.StatusCode, got.Header.Get("Location")
	a.Replayed = got.Header.Get("Idempotent-Replayed") == "true"
	body, err := readBody(got.Body, q.reading)
	a.Body = string(body)
	if strings.HasPrefix(got.Header.Get("Content-Type"), "application/problem+json") {
		var problem struct{ Code string }
		err = errors.Join(err, json.Unmarshal(body, &problem))
		a.Code = problem.Code
	}
	a.Fine = err == nil && a.Status == http.StatusCreated
	return a, err
}

func readBody(body io.Reader, reading func(read int)) ([]byte, error) {
	var read bytes.Buffer
	if reading != nil {
		_, _ = io.CopyN(&read, body, firstPart)
		reading(read.Len())
	}
	_, err := io.Copy(&read, body)
	return read.Bytes(), err
}

func dialSmall(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	conn, err := dialer.DialContext(ctx, network, addr)
	if err == nil {
		err = conn.(*net.TCPConn).SetReadBuffer(socketBuffer)
	}
	return conn, err
}
