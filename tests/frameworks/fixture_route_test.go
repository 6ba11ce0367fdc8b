package frameworks

import (
	"cmp"
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Servers of go-zero end with the process.
func TestMain(m *testing.M) {
	const zero = "github.com/zeromicro/go-zero/core/"
	suite.Main(m,
		goleak.IgnoreTopFunction(zero+"proc.init.1.func1"),
		goleak.IgnoreTopFunction(zero+"stat.init.1.func1"),
		goleak.IgnoreTopFunction(zero+"load.(*SheddingStat).loop"),
		goleak.IgnoreTopFunction(zero+"executors.(*PeriodicalExecutor).backgroundFlush.func1"))
}

// An answer is what a client gets.
type answer struct {
	status int
	header http.Header
	body   string
}

// A route is where a client sends transfers. ACCOUNT in the path and the body stands for the account.
type route struct{ path, body string }

// accountRoute has the account in its path.
var accountRoute = route{path: "/accounts/ACCOUNT/transfer"}

// post sends a transfer over a real connection. An empty key is a new one.
func (r route) post(t *testing.T, server *httptest.Server, account, key string) answer {
	t.Helper()
	of := strings.NewReplacer("ACCOUNT", account)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+of.Replace(r.path),
		strings.NewReader(of.Replace(r.body)))
	if err != nil {
		t.Error(err)
		return answer{}
	}
	request.Header.Set("Content-Type", "application/json")
	request.SetBasicAuth("ada", "pw")
	request.Header.Set("Idempotency-Key", cmp.Or(key, rand.Text()))
	got, err := server.Client().Do(request)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Error(err)
	}
	return answer{got.StatusCode, got.Header, string(text)}
}

// checkExclusion fails the test unless one transfer of an account runs at a time. While the first one runs, one of its
// account must be refused with this status, and one of another account must run. A transfer after the first one must
// run. handlerOf returns a handler that calls transfer.
func (r route) checkExclusion(t *testing.T, refused int, handlerOf func(transfer func(account string)) http.Handler) {
	t.Helper()
	var server *httptest.Server
	var ran []string
	var second, other answer
	server = httptest.NewServer(handlerOf(func(account string) {
		if ran = append(ran, account); len(ran) == 1 {
			second, other = r.post(t, server, "42", ""), r.post(t, server, "7", "")
		}
	}))
	defer server.Close()
	first, third := r.post(t, server, "42", ""), r.post(t, server, "42", "")
	if !slices.Equal(ran, []string{"42", "7", "42"}) || second.status != refused || !strings.Contains(second.body, `"code":"busy"`) {
		t.Errorf("ran: %q; the second answer is %v", ran, second)
	}
	for _, a := range []answer{first, other, third} {
		if a.status/100 != 2 || strings.Contains(a.body, "error") {
			t.Errorf("a transfer was answered by %v", a)
		}
	}
}

// transferAt returns a handler that transfers from the account of the request.
func transferAt(transfer func(account string), account func(*http.Request) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		transfer(account(r))
		w.WriteHeader(http.StatusCreated)
	}
}
