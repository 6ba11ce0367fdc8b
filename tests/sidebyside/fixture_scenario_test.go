package sidebyside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/subprocess"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// buildOld returns the path of a test binary with TestService, compiled in the tree of the old commit.
func buildOld(t *testing.T) string {
	t.Helper()
	run := func(dir, name string, args ...string) ([]byte, error) {
		command := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...) // a cleanup runs one
		command.Dir, command.Env = dir, append(os.Environ(), "GOWORK=off")
		return command.CombinedOutput()
	}
	commit, err := os.ReadFile("old-commit")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tree, here, binary := filepath.Join(dir, "tree"), filepath.Join(dir, "tree", "tests", "sidebyside"), filepath.Join(dir, "old.test")
	if text, err := run(".", "git", "worktree", "add", "--detach", tree, strings.TrimSpace(string(commit))); err != nil {
		if os.Getenv("CI") != "" {
			t.Setenv(suite.RequireEnv, "1")
		}
		suite.SkipOrFail(t, "the history has no commit of the file old-commit: test in a whole clone, as of `git fetch --unshallow`: %v\n%s", err, text)
	}
	t.Cleanup(func() {
		if text, err := run(".", "git", "worktree", "remove", "--force", tree); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	})
	if err := errors.Join(os.CopyFS(here, os.DirFS(".")), os.CopyFS(here, os.DirFS("testdata"))); err != nil {
		t.Fatal(err)
	}
	// With -trimpath, packages that the build cache has are not compiled again in another temporary folder.
	if text, err := run(here, "go", "test", "-c", "-trimpath", "-ldflags=-s", "-o", binary, "fixture_service_test.go", "old_tree_test.go"); err != nil {
		t.Fatalf("compile the old tree: %v\n%s", err, text)
	}
	return binary
}

// serving returns the process as soon as it serves.
func serving(t *testing.T, p *subprocess.Process) *subprocess.Process {
	t.Helper()
	suite.Eventually(t, "the process serves", func() bool {
		if p.HasEnded() {
			t.Fatal(p.Wait(), p.Output())
		}
		return addrOf(p) != ""
	})
	return p
}

func addrOf(p *subprocess.Process) string {
	addr, _ := p.ReportAfter("serving")
	return addr
}

// A scenario is a case with the two processes in one order. All its requests have one account and one Idempotency-Key.
type scenario struct {
	*testing.T
	account       string
	rdb           *redis.Client
	first, second *subprocess.Process
	now           *subprocess.Process // that of this tree
	seen          []string            // answers and events, with whether they are of the first
	keepsForm     bool                // records stay as a process has written them
}

// newLocker returns a Locker of the test itself. Its command timeout is longer than the default,
// because commands are slow while other tests load the machine.
func (s *scenario) newLocker(opts ...core.Option) *core.Locker {
	return core.Must(core.New(s.rdb, append(opts, core.WithCommandTimeout(4*time.Second))...))
}

// An answer is a status with its code or "replayed", and the rest without what marks a replay.
type answer struct{ short, text string }

// send sends a request, whose answer must be as wanted in short, and returns the rest of the answer.
func (s *scenario) send(p *subprocess.Process, path, body, want string) string {
	s.Helper()
	return s.start(p, path, body, "")(want)
}

// hold sends a request whose handler runs until the returned function is called.
func (s *scenario) hold(p *subprocess.Process, path string) (release func()) {
	s.Helper()
	name := s.account + addrOf(p)
	end := s.start(p, path, "", name)
	s.await(p, "acquired")
	return func() {
		s.Helper()
		s.turn(p)
		s.rdb.RPush(s.Context(), name, "")
		end("201")
	}
}

// keyOfPayment returns the endpoint key of the requests to /pay.
func (s *scenario) keyOfPayment() string {
	s.Helper()
	key, err := core.EndpointKey(http.MethodPost, "POST /pay", s.account, "k")
	if err != nil {
		s.Fatal(err)
	}
	return key
}

// delete deletes a key that Redis must have.
func (s *scenario) delete(name string) {
	s.Helper()
	if n, err := s.rdb.Del(s.Context(), name).Result(); n != 1 || err != nil {
		s.Fatalf("%d keys %q: %v", n, name, err)
	}
}

// await returns when the process has printed the event.
func (s *scenario) await(p *subprocess.Process, event string) {
	s.Helper()
	suite.Eventually(s, "an event: "+event, func() bool { return strings.Contains(p.Output(), s.account+" "+event) })
}

// start is send for an answer that is awaited later.
func (s *scenario) start(p *subprocess.Process, path, body, hold string) (end func(want string) string) {
	s.turn(p)
	got := make(chan answer, 1)
	go func() { got <- s.ask(p, path, body, hold) }()
	return func(want string) string {
		s.Helper()
		a := suite.Receive(s, "the answer of "+path, got)
		if a.short != want {
			s.Errorf("%s: %q, want %q", path, a, want)
		}
		s.seen = append(s.seen, fmt.Sprint(p == s.first, " ", a))
		return a.text
	}
}

func (s *scenario) ask(p *subprocess.Process, path, body, hold string) (a answer) {
	if path == "gRPC" {
		return s.call(p, body)
	}
	r, _ := http.NewRequestWithContext(s.Context(), http.MethodPost, "http://"+addrOf(p)+path, strings.NewReader(body))
	r.Header = http.Header{"X-Account": {s.account}, "X-Hold": {hold}, "Idempotency-Key": {"k"}, "Content-Type": {"text/plain"}}
	if boundary, _, isForm := strings.Cut(body, "\r\n"); isForm {
		r.Header.Set("Content-Type", "multipart/form-data; boundary="+strings.TrimPrefix(boundary, "--"))
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return answer{text: err.Error()}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	problem := struct{ Code string }{}
	_ = json.Unmarshal(text, &problem)
	a.short = fmt.Sprint(response.StatusCode, " ", problem.Code)
	if h := response.Header; h.Get("Idempotent-Replayed") == "true" && h.Get("Cache-Control") == "no-store" {
		a.short += "replayed"
		h.Del("Idempotent-Replayed")
		h.Del("Cache-Control")
	}
	response.Header.Del("Date")
	return answer{strings.TrimSpace(a.short), fmt.Sprintf("%q %q %v", response.Header, text, err)}
}

func (s *scenario) call(p *subprocess.Process, body string) (a answer) {
	conn, err := grpc.NewClient(addrOf(p), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return answer{text: err.Error()}
	}
	defer func() { _ = conn.Close() }()
	var header, trailer metadata.MD
	got, err := pb.NewTestServiceClient(conn).UnaryCall(metadata.AppendToOutgoingContext(s.Context(), "x-account", s.account, "idempotency-key", "k"),
		&pb.SimpleRequest{Payload: &pb.Payload{Body: []byte(body)}}, grpc.Header(&header), grpc.Trailer(&trailer))
	a.short = status.Code(err).String()
	if len(header.Get("idempotent-replayed")) > 0 {
		a.short += " replayed"
		header.Delete("idempotent-replayed")
	}
	a.text = fmt.Sprintf("%v %q %q %q", status.Convert(err).Proto(), map[string][]string(header), map[string][]string(trailer), got.GetPayload().GetBody())
	return a
}

// changed matches what the trees say on purpose in other words, with what stands for it: the texts for
// people, and the names of idempotent requests.
var changed = []struct {
	text *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\\"detail\\":\\".*?\\",`), ""},
	{regexp.MustCompile(`message:".*?"`), ""},
	{regexp.MustCompile(`"grpc-status-details-bin":\[".*?"\]`), ""},
	{regexp.MustCompile(`"Content-Length":\["\d+"\] ("Content-Type":\["application/problem)`), "$1"},
	{regexp.MustCompile(`^((?:true|false) \w+) .*?( ?shared: .* idempotent: true )`), "$1$2"},
}

// withEvents returns all that was seen, without what has changed. Events of requests at the same time
// have no order. This tree notes the report of an unknown outcome, so only the old one reports it again:
// those events do not count.
func (s *scenario) withEvents() []string {
	for _, p := range []*subprocess.Process{s.first, s.second} {
		for line := range strings.Lines(p.Output()) {
			if event, ok := strings.CutPrefix(line, s.account+" "); ok {
				s.seen = append(s.seen, fmt.Sprint(p == s.first, " ", event))
			}
		}
	}
	for i := range s.seen {
		for _, c := range changed {
			s.seen[i] = c.text.ReplaceAllString(s.seen[i], c.by)
		}
	}
	s.seen = slices.DeleteFunc(s.seen, func(line string) bool { return strings.Contains(line, " outcome_unknown shared: ") })
	slices.Sort(s.seen)
	return s.seen
}
