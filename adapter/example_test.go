package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// self is the name of the adapter of these examples.
const self = adapter.Name("yourlock")

// exampleLocker stands for the Locker of a program.
func exampleLocker() (locks *core.Locker, stop func()) {
	server := adapter.Must(miniredis.Run())
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	return core.Must(core.New(rdb)), func() {
		_ = rdb.Close()
		server.Close()
	}
}

// send sends a payment of an account, and returns the answer.
func send(h http.Handler, account string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), "POST", "/payments", strings.NewReader("amount=7"))
	r.Header.Set("Idempotency-Key", account)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A middleware that locks. This one is for handlers of net/http.
func ExampleNewLock() {
	locks, stop := exampleLocker()
	defer stop()

	middleware := func(l *core.Locker, key core.Key[*http.Request], next http.Handler, opts ...core.Option) http.Handler {
		lock := adapter.Must(adapter.NewLock(self, "Middleware", l, key, opts))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entry, err := lock.Enter(r.Context(), r)
			defer entry.Leave()
			if err != nil {
				entry.Refuse(w, err)
				return
			}
			next.ServeHTTP(w, entry.Request(r))
			entry.Returned()
		})
	}

	var h http.Handler
	h = middleware(locks, nethttplock.IdempotencyKey(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, _ := core.LeaseFromContext(r.Context())
		_, _ = fmt.Fprintf(w, "locks %s; another request: %d", lease.Key(), send(h, "42").Code)
	}))
	fmt.Println(send(h, "42").Body)
	_, err := adapter.NewLock(self, "Middleware", locks, core.Key[*http.Request]{}, nil)
	fmt.Println(err)
	// Output:
	// locks 42; another request: 409
	// reqlock: yourlock: Middleware needs a key
}

// A middleware that runs a request once for its key. The framework is on net/http, so NetHTTP makes
// the Accessors.
func ExampleNewIdempotentHTTP() {
	locks, stop := exampleLocker()
	defer stop()

	idempotent := func(l *core.Locker, key core.Key[*http.Request], next http.Handler, opts ...core.Option) http.Handler {
		accessors := adapter.NetHTTP(
			func(r *http.Request) *http.Request { return r }, func(r *http.Request) string { return r.Pattern })
		once := adapter.Must(adapter.NewIdempotentHTTP(self, "Idempotent", l, key, accessors, opts))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entry, exchange, err := once.Begin(r.Context(), r)
			defer entry.Leave()
			switch {
			case err != nil:
			case exchange == nil: // a GET, for example
				next.ServeHTTP(w, entry.Request(r))
				entry.Returned()
			case exchange.Replayed():
				exchange.Replay(w)
			default:
				err = exchange.Run(w, r, func(w *adapter.Recorder, r *http.Request) { next.ServeHTTP(w, r) })
			}
			if err != nil {
				entry.Refuse(w, err)
			}
		})
	}

	payments := 0
	h := idempotent(locks, nethttplock.IdempotencyKey(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		payments++
		_, _ = fmt.Fprint(w, "payment ", payments)
	}))
	for _, key := range []string{"a", "a", "b"} {
		answer := send(h, key)
		fmt.Printf("%s, replayed %q\n", answer.Body, answer.Header().Get("Idempotent-Replayed"))
	}
	// Output:
	// payment 1, replayed ""
	// payment 1, replayed "true"
	// payment 2, replayed ""
}

// A page is a request and its answer in a framework without net/http. It is an http.ResponseWriter,
// by which package adapter replays and refuses.
type page struct {
	method, path, query, route string
	header, answered           http.Header
	params                     map[string]string
	body, answer               []byte
	status                     int
}

func (p *page) Header() http.Header         { return p.answered }
func (p *page) WriteHeader(status int)      { p.status = status }
func (p *page) Write(b []byte) (int, error) { p.answer = append(p.answer, b...); return len(b), nil }

// Idempotent requests of a framework that keeps the answer of a handler until the handler has
// returned.
func ExampleExchange_RunAnswer() {
	locks, stop := exampleLocker()
	defer stop()

	route := func(p *page) string { return p.route }
	accessors := adapter.Accessors[*page]{
		Method: func(p *page) string { return p.method },
		Route:  route, Pattern: route,
		Path:   func(p *page) string { return p.path },
		Query:  func(p *page) string { return p.query },
		Header: func(p *page, name string) []string { return p.header[name] },
		Body: func(p *page, limit int64) ([]byte, error) {
			if int64(len(p.body)) > limit {
				return nil, adapter.BodyTooLarge(limit)
			}
			return p.body, nil
		},
	}
	key := core.KeyOf(func(p *page) (string, error) { return adapter.IdempotencyKey(p.header["Idempotency-Key"]) })
	once := adapter.Must(adapter.NewIdempotentHTTP(self, "Idempotent", locks, key, accessors, nil))

	run := func(ctx context.Context, exchange *adapter.Exchange, p *page, handler func(context.Context, *page)) error {
		before, answered := p.answered.Clone(), false
		defer func() {
			if !answered { // cut off or panicked: what the handler has set does not belong to the answer
				p.status, p.answered, p.answer = 0, before, nil
			}
		}()
		err := exchange.RunAnswer(ctx, before, func(ctx context.Context) adapter.HTTPAnswer {
			defer func() { exchange.SetStatus(p.status) }() // counts if the handler panics
			handler(ctx, p)
			return adapter.HTTPAnswer{Status: p.status, Header: p.answered, Body: p.answer}
		})
		answered = err == nil
		return err
	}
	serve := func(ctx context.Context, p *page, handler func(context.Context, *page)) {
		entry, exchange, err := once.Begin(ctx, p)
		defer entry.Leave()
		switch {
		case err != nil:
		case exchange == nil:
			handler(entry.Context(), p)
			entry.Returned()
		case exchange.Replayed():
			exchange.Replay(p)
		default:
			err = run(entry.Context(), exchange, p, handler)
		}
		if err != nil {
			entry.Refuse(p, err)
		}
	}

	for _, key := range []string{"a", "a", ""} {
		p := &page{method: "POST", route: "/payments", header: http.Header{"Idempotency-Key": {key}}, answered: http.Header{}}
		serve(context.Background(), p, func(_ context.Context, p *page) { p.status, p.answer = 201, []byte("paid") })
		fmt.Printf("%d %.4s, replayed %q\n", p.status, p.answer, p.answered.Get("Idempotent-Replayed"))
	}
	// Output:
	// 201 paid, replayed ""
	// 201 paid, replayed "true"
	// 400 {"ty, replayed ""
}

// A call is a unary call of an RPC framework.
type call struct{ method, key, message string }

// A status is the error that the framework sends.
type status struct {
	code         uint32
	reason, text string
	cause        error
}

func (s *status) Error() string { return s.text }
func (s *status) Unwrap() error { return s.cause }

// Idempotent calls of an RPC framework.
func ExampleNewIdempotentRPC() {
	locks, stop := exampleLocker()
	defer stop()

	rpc := adapter.RPC[*call]{
		Method:      func(c *call) string { return c.method },
		Header:      func(c *call, _ string) []string { return []string{c.key} },
		Fingerprint: func(c *call) ([]byte, error) { return []byte(c.message), nil },
		Code: func(err error) (uint32, bool) {
			if own, ok := err.(*status); ok { //nolint:errorlint // of the error itself
				return own.code, true
			}
			return 0, false
		},
		Reason: func(err error) string {
			if own, ok := err.(*status); ok { //nolint:errorlint // of the error itself
				return own.reason
			}
			return ""
		},
		Refuse: func(why, cause error) error {
			refusal := adapter.RefusalOf(why)
			return &status{refusal.GRPC, strings.ToUpper(refusal.Code), "refused: " + refusal.Code, cause}
		},
	}
	key := core.KeyOf(func(c *call) (string, error) { return adapter.IdempotencyKey([]string{c.key}) })
	once := adapter.Must(adapter.NewIdempotentRPC(self, "IdempotentInterceptor", locks, key, rpc, nil))

	serve := func(ctx context.Context, c *call, handler func(context.Context) (reply string, err error)) (reply string, err error) {
		entry, exchange, err := once.Begin(ctx, c)
		defer entry.Leave()
		if err != nil {
			err = rpc.Refuse(err, err)
			rpc.Refused(entry, err)
			return "", err
		}
		if exchange == nil {
			reply, err = handler(entry.Context())
			return reply, rpc.Returned(entry, err)
		}
		if stored, ok := exchange.Replayed(); ok { // of successes alone: see below
			return string(stored.Message), nil
		}
		err = exchange.Run(func(ctx context.Context) error {
			reply, err = handler(ctx)
			return err
		}, func(err error) (adapter.RPCAnswer, bool) {
			return adapter.RPCAnswer{Type: "text", Message: []byte(reply)}, err == nil
		})
		return reply, err
	}

	payments := 0
	for _, c := range []*call{{"/Bank/Pay", "a", "7"}, {"/Bank/Pay", "a", "7"}, {"/Bank/Pay", "a", "8"}} {
		fmt.Println(serve(context.Background(), c, func(context.Context) (string, error) {
			payments++
			return fmt.Sprint("payment ", payments), nil
		}))
	}
	// Output:
	// payment 1 <nil>
	// payment 1 <nil>
	//  refused: mismatch
}

// A parameter of the route. A route without the parameter is a mistake of the program, of which the
// observers learn once.
func ExamplePathKey() {
	param := func(name string) core.Key[*page] {
		return adapter.PathKey("Param", name, func(p *page) adapter.PathValue {
			value, ok := p.params[name]
			return adapter.PathValue{Value: value, Route: p.route, Missing: !ok}
		})
	}

	p := &page{route: "/accounts/:id", params: map[string]string{"id": "42"}}
	key, _ := param("id").Named("account").Read(p)
	_, err := param("ID").Read(p)
	fmt.Println(key.Raw())
	fmt.Println(err)
	// Output:
	// account:42
	// reqlock: no key: Param("ID"): the route "/accounts/:id" has no wildcard "ID"
}

// A key of nethttplock, for a framework whose request contains that of net/http.
func ExampleConvert() {
	type Context struct{ Request *http.Request }
	header := func(name string) core.Key[*Context] {
		return adapter.Convert(nethttplock.Header(name), func(c *Context) *http.Request { return c.Request })
	}

	c := &Context{httptest.NewRequest("GET", "/", nil)} //nolint:noctx // no request is sent
	c.Request.Header.Set("Tenant", "acme")
	key, err := header("Tenant").Read(c)
	fmt.Println(key.Raw(), err)
	// Output:
	// acme <nil>
}

// A key of the framework's own, whose errors say what the program has called.
func ExampleCall() {
	locals := func(name string) core.Key[*page] {
		return core.KeyOf(func(p *page) (string, error) { return adapter.Value(p.params[name]) }).
			Describe(adapter.Call("Locals", name), "")
	}

	_, err := locals("user").Read(&page{})
	fmt.Println(err)
	// Output:
	// reqlock: no key: Locals("user") is empty
}

// A key in the body. The middleware gives it the limit of core.WithMaxBody.
func ExampleBodyKey() {
	field := func(path string) core.Key[*page] {
		return adapter.BodyKey(adapter.Call("JSONField", path), "the JSON field "+path, func(p *page, limit int64) (string, error) {
			if int64(len(p.body)) > limit {
				return "", adapter.BodyTooLarge(limit)
			}
			return adapter.JSONField(p.body, path)
		})
	}

	key, err := field("account.id").Read(&page{body: []byte(`{"account":{"id":42}}`)})
	fmt.Println(key.Raw(), err)
	// Output:
	// 42 <nil>
}

// A setting is an option that needs a type of the framework, here one that a function WithErrorHandler
// of the adapter returns. No other adapter accepts it.
func ExampleNewSetting() {
	locks, stop := exampleLocker()
	defer stop()

	errorHandler := adapter.NewSetting[func(*page, error)](self, "WithErrorHandler", adapter.ForAll)
	key := core.Getter(func(p *page) string { return p.path })
	opts := []core.Option{errorHandler.Option(func(_ *page, err error) { fmt.Println("refused:", err) })}
	lock := adapter.Must(adapter.NewLock(self, "Middleware", locks, key, opts))
	if handle, isSet := errorHandler.Value(lock.Locker()); isSet {
		handle(&page{}, core.ErrBusy)
	}
	_, err := adapter.NewLock("otherlock", "Middleware", locks, key, opts)
	fmt.Println(err)
	// Output:
	// refused: reqlock: busy
	// reqlock: otherlock: yourlock.WithErrorHandler is an option of another adapter: write options of otherlock and core
}

// What a refused client gets.
func ExampleWriteRefusal() {
	w := httptest.NewRecorder()
	adapter.WriteRefusal(w, &core.Error{Kind: core.ErrBusy, RetryAfter: 1})
	fmt.Println(w.Code, w.Header().Get("Retry-After"), w.Header().Get("Content-Type"))
	fmt.Println(adapter.RefusalOf(errors.New("any")).Code)
	// Output:
	// 409 1 application/problem+json
	// internal
}

// The error handler of a program writes on a Guard. If it sets no status, or answers nothing, the
// request does not look like a success.
func ExampleGuard() {
	locks, stop := exampleLocker()
	defer stop()

	lock := adapter.Must(adapter.NewLock(self, "Middleware", locks, nethttplock.Header("Account"), nil))
	for _, handle := range []func(w http.ResponseWriter){
		func(w http.ResponseWriter) { _, _ = io.WriteString(w, "later") },
		func(http.ResponseWriter) {},
	} {
		fmt.Println(send(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entry, err := lock.Enter(r.Context(), r)
			defer entry.Leave()
			guard := entry.Guard(w, err)
			defer guard.Finish()
			handle(guard)
		}), "").Code)
	}
	// Output:
	// 400
	// 400
}

// Options that come from a file.
func ExampleCheckOptions() {
	fmt.Println(adapter.CheckOptions(nil, core.WithTTL(-1)))
	// Output:
	// reqlock: WithTTL: -1ns is below 100ms
}
