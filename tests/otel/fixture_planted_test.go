package oteltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

// A planted is a service whose requests have the secrets, and the search in all that leaves it.
type planted struct {
	*testing.T
	*search
	*observed
	tap    tap
	server *redistest.Server
	admin  *redis.Client // of the test: it is not searched
	sealer *core.AESSealer
	held   chan struct{} // the handler of /hold sends to it
	hold   chan struct{} // and then runs until it is closed
	token  string
	ticket string
}

func newPlanted(t *testing.T) *planted {
	t.Helper()
	p := &planted{T: t, search: new(search), held: make(chan struct{}, 2), hold: make(chan struct{})}
	p.server = redistest.Start(t, "--rdbcompression", "no")
	p.admin = p.server.Client(t)
	if err := p.admin.Do(t.Context(), "ACL", "SETUSER", "app", "reset", "on", ">"+redisPassword, "~*", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewJSONHandler(p.writer(inLog), &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if p.sealer, err = core.NewAESSealer("now", map[string][]byte{"now": []byte(sealKey)}); err != nil {
		t.Fatal(err)
	}
	p.observed = newObservedOn(t, p.client(redisPassword), "reqlock:",
		core.WithLogger(logger), core.WithObserver(core.SlogObserver(logger)), core.WithObserver(p.see),
		core.WithReference(func(context.Context) string { return reference }), core.WithCaller(true), core.WithInstance(core.Instance{Service: "payments", Version: "1.0.0"}),
		core.WithObserver(func(core.Event) { panic(panicValue) }))
	return p
}

// client returns a client of the service, whose connections are searched.
func (p *planted) client(password string) *redis.Client {
	return p.server.Client(p.T, func(o *redis.Options) {
		o.Username, o.Password, o.Dialer = "app", password, p.tap.dial
	})
}

// serve starts a server with the routes of the service. Two of them seal their answers only if seals is true.
func (p *planted) serve(seals bool) *httptest.Server {
	account, user := nethttplock.PathValue("id").Named("account"), core.Join(nethttplock.Header("X-User"), nethttplock.IdempotencyKey())
	sealed := []core.Option{core.WithReplayedHeaders("X-Payment-Id")}
	if seals {
		sealed = append(sealed, core.WithSealer(p.sealer))
	}
	mux := http.NewServeMux()
	lock := func(route string, key nethttplock.Key, handler http.HandlerFunc, opts ...core.Option) {
		mux.Handle("POST "+route, nethttplock.Middleware(p.locks, key, opts...)(handler))
	}
	once := func(route string, handler http.HandlerFunc, opts ...core.Option) {
		mux.Handle("POST "+route, nethttplock.Idempotent(p.locks, user, opts...)(handler))
	}
	lock("/hold/{id}", account, func(_ http.ResponseWriter, r *http.Request) {
		p.print(r.Context(), core.LeasesFromContext(r.Context()))
		p.held <- struct{}{}
		<-p.hold
	}, core.WithWait(time.Minute))
	lock("/now/{id}", account, p.answering("done", ""), core.WithWait(0))
	lock("/mail", nethttplock.Header("X-Email").Named("mail").HMAC([]byte(hmacSecret)), p.answering("done", ""))
	lock("/query", nethttplock.Query("account"), p.answering("done", ""))
	once("/sealed", p.answering(sealedAnswer, sealedAnswer), sealed...)
	once("/open", p.answering(openAnswer, openHeader), core.WithReplayedHeaders("X-Payment-Id"))
	once("/once", p.answering(onceAnswer, onceAnswer), core.WithoutAnswer())
	once("/small", p.answering("done", ""), core.WithMaxBody(10))
	once("/panic", func(http.ResponseWriter, *http.Request) { panic(panicValue) })
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, span := p.tracers.Tracer("test").Start(r.Context(), "request")
		defer func() { span.End() }() // called by another function, End does not record a panic
		mux.ServeHTTP(w, r.WithContext(ctx))
	}))
	server.Config.ErrorLog = log.New(p.writer(inServer), "", 0)
	server.Start()
	p.Cleanup(server.Close)
	return server
}

// answering returns a handler with this answer.
func (p *planted) answering(body, header string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p.print(r.Context())
		if attempt, ok := core.AttemptFromContext(r.Context()); ok {
			p.print(attempt)
		}
		w.Header().Set("Set-Cookie", cookieOfAnswer)
		w.Header().Set("X-Payment-Id", header)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, body)
	}
}

// send sends a request with the secrets, and keeps its answer. It returns the status, or 0 if there is none.
func (p *planted) send(server *httptest.Server, path, body string) int {
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, server.URL+path, strings.NewReader(body))
	if err != nil {
		p.Error(err)
		return 0
	}
	r.Header = http.Header{
		"Authorization": {authorization}, "Cookie": {"session=" + cookieOfClient}, "X-Email": {hiddenKey},
		"X-User": {userOfRequest}, "Idempotency-Key": {requestKey},
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		return 0
	}
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		p.Error(err)
	}
	in := inAnswers
	if answer.Header.Get("Content-Type") == "application/problem+json" {
		in = inRefusal
	}
	p.add(in, fmt.Sprint(answer.Status, answer.Header, string(text)))
	return answer.StatusCode
}

// want sends a request whose answer has the status.
func (p *planted) want(server *httptest.Server, path, body string, want int) {
	p.Helper()
	if got := p.send(server, path, body); got != want {
		p.Errorf("%.20s: status %d, want %d", path, got, want)
	}
}

// holdAndWait has a request that holds its lock, one that waits for it, and one that is refused.
func (p *planted) holdAndWait() {
	server, statuses := p.serve(true), make(chan int, 2)
	ask := func() { statuses <- p.send(server, "/hold/"+lockKey, "") }
	go ask()
	suite.Receive(p.T, "the lock", p.held)
	go ask()
	p.awaitWaiting(p.T, 1)
	p.dump(p.T, p.admin)
	p.want(server, "/now/"+lockKey, "", http.StatusConflict)
	close(p.hold)
	for range 2 {
		if got := suite.Receive(p.T, "an answer", statuses); got != http.StatusOK {
			p.Errorf("status %d", got)
		}
	}
	p.want(server, "/mail", "", http.StatusCreated)
	p.want(server, "/query", "", http.StatusBadRequest)
	p.want(server, "/query?account=%01"+malformedKey, "", http.StatusBadRequest)
	p.want(server, "/query?account="+strings.Repeat(malformedKey, 20), "", http.StatusBadRequest)
}

// repeatRequests has first requests, copies, and other requests with their key.
func (p *planted) repeatRequests() {
	server := p.serve(true)
	for _, route := range []string{"/sealed", "/open"} {
		p.want(server, route, requestBody, http.StatusCreated)
		p.want(server, route, requestBody, http.StatusCreated)
		p.want(server, route, requestBody+"1", http.StatusUnprocessableEntity)
	}
	p.want(p.serve(false), "/sealed", requestBody, http.StatusConflict) // it has no Sealer
	p.want(server, "/once", requestBody, http.StatusCreated)
	p.want(server, "/once", requestBody, http.StatusConflict)
	p.want(server, "/small", requestBody, http.StatusRequestEntityTooLarge)
	p.want(server, "/panic", requestBody, http.StatusConflict) // the client of net/http has sent it again after the panic
}

// repeatCalls is repeatRequests on gRPC, where the answer is a status.
func (p *planted) repeatCalls() {
	key := core.Join(grpclock.Metadata("x-user"), grpclock.IdempotencyKey())
	handler := &bank{run: func(context.Context) error { return status.Error(codes.InvalidArgument, sealedStatus) }}
	client, _ := startBank(p.T, handler, grpc.UnaryInterceptor(
		grpclock.IdempotentUnaryServerInterceptor(p.locks, key, core.WithSealer(p.sealer))))
	ctx := metadata.AppendToOutgoingContext(p.Context(), "x-user", userOfRequest, "idempotency-key", requestKey,
		"authorization", authorization, "cookie", cookieOfClient)
	for cents, want := range []codes.Code{codes.InvalidArgument, codes.FailedPrecondition} {
		for range 2 { // a copy, too
			var header, trailer metadata.MD
			_, err := client.Transfer(ctx, &pb.TransferRequest{Account: &pb.Account{Id: requestMessage}, Cents: int64(cents)},
				grpc.Header(&header), grpc.Trailer(&trailer))
			if status.Code(err) != want {
				p.Errorf("call: %v, want %v", err, want)
			}
			in := inRefusal
			if want == codes.InvalidArgument {
				in = inAnswers
			}
			p.add(in, fmt.Sprint(status.Convert(err).Proto(), header, trailer))
		}
	}
}

// export keeps the spans, the metrics and what was sent to Redis.
func (p *planted) export() {
	for _, span := range p.spans.GetSpans() {
		p.add(inSpans, fmt.Sprint(span.Name, span.Attributes, span.Events, span.Links, span.Status, span.Resource))
	}
	for name := range p.series(p.T) {
		p.add(inMetrics, name)
	}
	p.add(onWire, p.tap.text())
	if len(p.spans.GetSpans()) < 3 || len(p.series(p.T)) < 10 ||
		!p.has(inLog, "lock outcome_unknown") || !p.has(inRefusal, "mismatch") {
		p.Errorf("there are too few spans, metrics or lines: %d, %d", len(p.spans.GetSpans()), len(p.series(p.T)))
	}
}
