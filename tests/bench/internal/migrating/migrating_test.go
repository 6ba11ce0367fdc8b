// Package migrating checks the Go code of docs/migrating.md that uses other locks. Only this
// module requires them.
package migrating

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/docs"
)

func TestMain(m *testing.M) { suite.Main(m) }

// root is the repository, seen from this package.
const root = "../../../.."

// peers returns the prelude of snippets that use other locks.
func peers() map[string]docs.Prelude {
	preludes := filepath.Join(root, "tests", "docs", "prelude")
	return map[string]docs.Prelude{"peers": {filepath.Join(preludes, "common"), filepath.Join(preludes, "http")}}
}

// check returns the findings in blocks.
func check(t *testing.T, blocks []docs.Block) []string {
	t.Helper()
	findings, err := docs.Check(t.Context(), ".", peers(), blocks)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

func TestEachBlockWithOtherLocksCompiles(t *testing.T) {
	blocks, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	blocks = slices.DeleteFunc(blocks, func(b docs.Block) bool { return b.Prelude != "peers" })
	for _, finding := range check(t, blocks) {
		t.Error(finding)
	}
}

func TestSnippetsCanUseOtherLocks(t *testing.T) {
	const page = "<!-- go: peers -->\n```go\n" +
		"rs := redsync.New(goredis.NewPool(rdb))\n" +
		"err := rs.NewMutex(account).LockContext(ctx)\n" +
		"lock, err := redislock.New(rdb).Obtain(ctx, account, time.Minute, nil)\n" +
		"locker, err := rueidislock.NewLocker(rueidislock.LockerOption{ClientOption: rueidis.ClientOption{}})\n" +
		"lock.Unlock()\n```\n"
	blocks, err := docs.Blocks("page.md", page)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"page.md:7: lock.Unlock undefined (type *redislock.Lock has no field or method Unlock)"}
	if got := check(t, blocks); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
