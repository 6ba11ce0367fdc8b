package clients

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

func TestMain(m *testing.M) { suite.Main(m) }

// block returns the only block of the page in a language.
func block(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?m)^```"+language+"\n((?s:.*?))^```$").FindAllSubmatch(page, -1)
	if len(found) != 1 {
		t.Fatalf("the page has %d blocks of %s, want one", len(found), language)
	}
	return string(found[0][1])
}

const (
	idempotencyKey = "8e03978e-40d5-43e8"
	payment        = `{"amount": 7}`
	retryAfter     = 2 * time.Second // other than the first pause of each client by default
)

// A service has one idempotent endpoint.
type service struct {
	url string

	mu       sync.Mutex  // held during each try
	began    []time.Time // by try
	statuses []int       // by try: 0 if the client got no answer
	runs     int         // of the handler
}

// start serves until the test ends. The first try is refused as busy or unavailable, or its answer is cut off, or
// its handler aborts the connection. Later tries meet no fault.
func start(t *testing.T, fault string) *service {
	t.Helper()
	s, mux, mend := &service{}, http.NewServeMux(), func() {}
	locks := locktest.New(t, core.WithRetryAfter(retryAfter))
	mux.Handle("POST /payments", nethttplock.Idempotent(locks.Locker, nethttplock.IdempotencyKey())(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if s.runs++; fault == "aborted" {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(http.StatusCreated)
		})))
	switch fault {
	case "busy":
		key, err := core.EndpointKey("POST", "POST /payments", idempotencyKey)
		if err != nil {
			t.Fatal(err)
		}
		mend = locks.Hold("i:" + key)
	case "unavailable":
		locks.Down()
		mend = locks.Up
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.began, s.statuses = append(s.began, time.Now()), append(s.statuses, 0)
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, r)
		isFirst := len(s.began) == 1
		if isFirst {
			mend()
		}
		if isFirst && fault == "cut off" {
			panic(http.ErrAbortHandler)
		}
		s.statuses[len(s.statuses)-1] = answer.Code
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	s.url = server.URL + "/payments"
	return s
}

// A client sends a payment by the block of a language.
type client struct {
	language      string
	needs         string   // a shell command that fails where the machine lacks something
	command       []string // which the program follows
	before, after string   // of the block
}

var clients = map[string]client{
	"go-retryablehttp": {language: "go", needs: "true"},
	"curl":             {language: "sh", needs: "command -v curl", command: []string{"bash", "-c"}},
	"requests": { // of Debian, not of another Python in the PATH
		language: "python", needs: "/usr/bin/python3 -c 'import requests'", command: []string{"/usr/bin/python3", "-c"},
		before: "import json, os\nurl, key, payment = os.environ['url'], os.environ['key'], json.loads(os.environ['payment'])\n",
		after:  "answer.raise_for_status()\n",
	},
	"axios": {
		language: "js", needs: "command -v npm", command: []string{"node", "--input-type=module", "-e"},
		before: "const { url, key, payment } = process.env\n",
	},
}

// prepare installs axios in a folder. It skips the test where the machine lacks something.
func (c client) prepare(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "bash", "-c", c.needs).CombinedOutput(); err != nil {
		suite.SkipOrFail(t, "%s: %v %s", c.needs, err, out)
	}
	if c.language == "js" {
		const install = `cp package.json package-lock.json "$0" && cd "$0" && npm ci --no-audit --no-fund --ignore-scripts`
		if out, err := exec.CommandContext(t.Context(), "bash", "-c", install, dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// send sends the payment.
func (c client) send(t *testing.T, dir, url string) error {
	t.Helper()
	program := block(t, c.language)
	if c.language == "go" {
		text, err := os.ReadFile("retryable.go")
		if flat := strings.ReplaceAll(string(text), "\n\t", "\n"); !strings.Contains(flat, program) {
			t.Errorf("the block of the page is not in retryable.go: %v", err)
		}
		answer, err := pay(t.Context(), url, idempotencyKey, []byte(payment))
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	}
	run := exec.CommandContext(t.Context(), c.command[0], append(slices.Clip(c.command[1:]), c.before+program+c.after)...)
	run.Dir, run.Env = dir, append(os.Environ(), "url="+url, "key="+idempotencyKey, "payment="+payment)
	out, err := run.CombinedOutput()
	t.Logf("%s", out)
	return err
}

// faults are the statuses of the tries after each fault.
var faults = map[string][]int{
	"busy":        {http.StatusConflict, http.StatusCreated},
	"unavailable": {http.StatusServiceUnavailable, http.StatusCreated},
	"cut off":     {0, http.StatusCreated},
	"aborted":     {0, http.StatusConflict}, // outcome_unknown: no third try
}

func TestSettingsOfThePage(t *testing.T) {
	t.Parallel()
	for name, c := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.prepare(t, dir)
			for fault, want := range faults {
				if name == "curl" && fault == "aborted" {
					continue // curl also sends again what is refused for good: the page says so
				}
				t.Run(fault, func(t *testing.T) {
					t.Parallel()
					s := start(t, fault)
					if err := c.send(t, dir, s.url); err != nil && fault != "aborted" {
						t.Error(err)
					}
					s.mu.Lock()
					defer s.mu.Unlock()
					if !slices.Equal(s.statuses, want) || s.runs != 1 {
						t.Fatalf("the tries got %d, want %d, and the handler ran %d times", s.statuses, want, s.runs)
					}
					isInvited := want[0] != 0 && (name != "curl" || fault != "busy") // curl ignores Retry-After of a 409
					if pause := s.began[1].Sub(s.began[0]); isInvited && pause < retryAfter {
						t.Errorf("the second try came after %v, want %v", pause, retryAfter)
					}
				})
			}
		})
	}
}

func TestServiceConfigOfThePage(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t, core.WithRetryAfter(retryAfter))
	release := locks.Hold("account:42")
	var began []time.Time
	refused := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		began = append(began, time.Now())
		defer release()
		return handler(ctx, req)
	}
	key := grpclock.Metadata("account").Named("account")
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(refused, grpclock.UnaryServerInterceptor(locks.Locker, key)))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	listener := bufconn.Listen(1 << 10)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	config := strings.ReplaceAll(block(t, "json"), "bank.v1.Bank", "grpc.health.v1.Health")
	conn, err := grpc.NewClient("passthrough:bank", grpc.WithDefaultServiceConfig(config),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "account", "42")
	_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil || len(began) != 2 || began[1].Sub(began[0]) < retryAfter {
		t.Errorf("after tries at %v: %v", began, err)
	}
}
