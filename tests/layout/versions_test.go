package layout

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// supportedRow matches a row of the versions in SECURITY.md.
	supportedRow = regexp.MustCompile("(?m)^\\| `?([\\w./-]+)`? \\| (.+?)(?: or newer)? \\|$")
	// required matches a module that a go.mod requires itself.
	required = regexp.MustCompile(`(?m)^\s+(\S+) (v\S+)$`)
	// series matches the series of servers in .ci/servers.
	series = regexp.MustCompile(`(?m)^declare -A series=\(\[redis\]=(\S+)\. \[valkey\]=(\S+)\. \[valkey9\]=(\S+)\.\)`)
	// goLine matches the version of Go.
	goLine = regexp.MustCompile(`(?m)^go (\d+\.\d+)`)
)

// The frameworks and clients are those that a module which is released requires. The servers are those of the tests:
// Redis 7.0 is that of the machines of GitHub.
func TestSupportedVersionsAreThoseOfTheTests(t *testing.T) {
	t.Parallel()
	rows := make(map[string]string)
	for _, row := range supportedRow.FindAllStringSubmatch(files(t, ".md")["SECURITY.md"], -1) {
		rows[row[1]] = row[2]
	}
	servers, err := os.ReadFile(filepath.Join(root, ".ci", "servers"))
	if err != nil {
		t.Fatal(err)
	}
	of, all := series.FindSubmatch(servers), files(t, "go.mod")
	if of == nil {
		t.Fatal(".ci/servers has no series of servers")
	}
	want := map[string]string{
		"Go":     goLine.FindStringSubmatch(all["go.mod"])[1],
		"Redis":  "7.0, " + string(of[1]),
		"Valkey": string(of[2]) + ", " + string(of[3]),
	}
	shown := []string{
		"github.com/redis/go-redis/v9", "github.com/gin-gonic/gin", "github.com/labstack/echo/v4", "github.com/labstack/echo/v5",
		"github.com/gofiber/fiber/v3", "google.golang.org/grpc", "connectrpc.com/connect",
	}
	for name, text := range all {
		if dir := path.Dir(name); strings.HasPrefix(dir, "tests/") || strings.HasPrefix(dir, "examples/") {
			continue
		}
		for _, module := range required.FindAllStringSubmatch(text, -1) {
			if slices.Contains(shown, module[1]) {
				want[module[1]] = module[2]
			}
		}
	}
	for name, version := range want {
		if rows[name] != version {
			t.Errorf("SECURITY.md has the version %q of %s, want %q", rows[name], name, version)
		}
	}
	for name := range rows {
		if _, ok := want[name]; !ok {
			t.Errorf("SECURITY.md has a row of %s, and no module requires it", name)
		}
	}
}
