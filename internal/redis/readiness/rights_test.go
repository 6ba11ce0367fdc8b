package readiness

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// Each command of a script is among the rights that the documentation names, and Check finds out whether it is allowed.
func TestRightsCoverTheScripts(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { _ = rdb.Close() }()
	p, err := NewCheck(rdb, "reqlock:", 0, command.Replicas{}, new(Passed)).newProbe(target{key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	var probed []string
	for _, args := range p.commands() {
		probed = append(probed, args[0].(string))
	}
	sources, err := filepath.Glob("../script/*.lua")
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	rights := strings.Fields(redistest.Rights)
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`).FindAllSubmatch(text, -1) {
			name := strings.ToLower(string(call[1]))
			if name == "spublish" {
				continue // see redistest.ClusterRights
			}
			if !slices.Contains(rights, "+"+name) || !slices.Contains(probed, name) {
				t.Errorf("%s calls %s, which is not in redistest.Rights, or Check does not send it", filepath.Base(path), name)
			}
		}
	}
}
