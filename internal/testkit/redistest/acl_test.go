package redistest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// ofProduct is a command as reqlock sends it.
type ofProduct struct{ *redis.Cmd }

func (ofProduct) NoRetry() bool { return true }

// Commands of reqlock have only the rights, on any client. Commands of a test have all
// rights. The environment of another process restricts the rights, so that other tests can run
// at the same time.
func TestMinimalRights(t *testing.T) {
	t.Parallel()
	Program(t)
	const rights = "1,other:"
	if os.Getenv(rightsEnv) != rights {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMinimalRights$", "-test.v")
		child.Env = append(os.Environ(), rightsEnv+"="+rights)
		printed, err := child.CombinedOutput()
		if err != nil || !strings.Contains(string(printed), "--- PASS: TestMinimalRights") {
			t.Errorf("%v\n%s", err, printed)
		}
		return
	}
	server := Start(t)
	sentinels, cluster := StartSentinel(t), StartCluster(t)
	clients := map[string]redis.UniversalClient{
		"server":    server.Client(t),
		"proxy":     NewProxy(t, server.Addr()).Client(t),
		"observer":  AdminClient(t, server.Addr()),
		"sentinels": sentinels.Client(t),
		"cluster":   cluster.Client(t),
	}
	for name, rdb := range clients {
		product := func(args ...any) error {
			return rdb.Process(t.Context(), ofProduct{redis.NewCmd(t.Context(), args...)})
		}
		batch := func(args ...any) error {
			pipeline := rdb.Pipeline()
			_ = pipeline.Process(t.Context(), ofProduct{redis.NewCmd(t.Context(), args...)})
			_, err := pipeline.Exec(t.Context())
			return err
		}
		for _, send := range []func(...any) error{product, batch} {
			for _, args := range [][]any{{"set", "reqlock:k", "v"}, {"set", "{reqlock:k}:q", "v"}, {"get", "other:k"}} {
				if err := send(args...); err != nil && !errors.Is(err, redis.Nil) {
					t.Errorf("%s: %v: %v", name, args, err)
				}
			}
			for _, args := range [][]any{{"incr", "reqlock:n"}, {"get", "k"}, {"keys", "*"}} {
				if err := send(args...); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
					t.Errorf("%s: %v: got %v", name, args, err)
				}
			}
		}
		if err := rdb.Incr(t.Context(), "n").Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for what, pipe := range map[string]func(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error){
			"pipeline": rdb.Pipelined, "transaction": rdb.TxPipelined,
		} {
			_, err := pipe(t.Context(), func(p redis.Pipeliner) error {
				p.Incr(t.Context(), "n")
				p.Incr(t.Context(), "n")
				return nil
			})
			if err != nil {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		subscription := rdb.Subscribe(t.Context(), "elsewhere")
		if _, err := subscription.Receive(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("%s: subscribed: %v", name, err)
		}
		_ = subscription.Close()
	}
	server.Restart()
	server.Grant("+incr")
	if err := clients["server"].Process(t.Context(), ofProduct{redis.NewCmd(t.Context(), "incr", "reqlock:n")}); err != nil {
		t.Errorf("granted: %v", err)
	}
}

func TestTheRightOfReplicasIsDocumentedAndNotGeneral(t *testing.T) {
	t.Parallel()
	for path, says := range map[string]string{
		"core/doc.go":        "WithReplicas takes " + ReplicaRights + ".",
		"./core/doc.go":      "WithUnknownSearch takes " + strings.Join(SearchRights[:2], " and ") + ", and " + SearchRights[2],
		"./docs/security.md": "`WithUnknownSearch` needs `" + strings.Join(SearchRights[:2], "` and `"),
		"docs/security.md":   "`WithReplicas` needs `" + ReplicaRights + "`, `NewQuorum` needs `" + QuorumRights + "`, and `WithInstance` needs `" + InstanceRight + "`.",
	} {
		text, err := os.ReadFile(filepath.Join(root(t), path))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), says) {
			t.Errorf("%s does not say %q", path, says)
		}
	}
	if strings.Contains(Rights+ClusterRights, ReplicaRights) {
		t.Errorf("%s is granted to all", ReplicaRights)
	}
}

// The documentation quotes the rule of the tests.
func TestTheRuleIsDocumentedWordByWord(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"docs/security.md", "core/doc.go"} {
		text, err := os.ReadFile(filepath.Join(root(t), path))
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range []string{Rights, ClusterRights} {
			if !strings.Contains(string(text), " "+rule+"\n") && !strings.Contains(string(text), "\t"+rule+"\n") {
				t.Errorf("%s does not say %q", path, rule)
			}
		}
	}
}

// root returns the folder of the main module: the next one above this package with a
// go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no folder above this one has a go.mod")
		}
		dir = filepath.Dir(dir)
	}
}

// The stack of a command is searched for this folder: a stale path would find nothing.
func TestTheCodeUnderTestIsWhereStacksAreSearched(t *testing.T) {
	t.Parallel()
	found := false
	err := filepath.WalkDir(filepath.Join(root(t), filepath.FromSlash(product)), func(name string, _ os.DirEntry, err error) error {
		found = found || strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		return err
	})
	if err != nil || !found {
		t.Errorf("%s holds Go files: %t, %v", product, found, err)
	}
}
