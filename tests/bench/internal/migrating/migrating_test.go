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

func TestEachBlockWithOtherLocksCompiles(t *testing.T) {
	blocks, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	blocks = slices.DeleteFunc(blocks, func(b docs.Block) bool { return b.Prelude != "peers" })
	wrong := docs.Block{Page: "wrong", Line: 1, Prelude: "peers", Text: "lock, err := redislock.New(rdb).Obtain(ctx, account, time.Minute, nil)\nlock.Unlock()\n"}
	findings, err := docs.Check(t.Context(), ".", peers(), append(blocks, wrong))
	if err != nil {
		t.Fatal(err)
	}
	if known := "wrong:2: lock.Unlock undefined (type *redislock.Lock has no field or method Unlock)"; len(blocks) == 0 || !slices.Equal(findings, []string{known}) {
		t.Errorf("%d blocks, got %q, want only %q", len(blocks), findings, known)
	}
}
