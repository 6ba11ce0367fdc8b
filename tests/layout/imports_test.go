// Package layout tests what the compiler and the linter do not see: which package imports which, the
// links of pages and comments, the tests that the list of faults names, the names of test files, and
// what scripts say about modules.
package layout

import (
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// layers has a row for each package of the product, with all that it imports. Imports go
// one way: protolock -> adapters -> adapter -> core -> {engine, redis/*} -> store. In redis: {readiness, quorumstore} ->
// redisstore -> {pipeline, pubsub} -> command -> {keyspace, script, topology}.
//
// A row names packages of this repository by the last part of their paths, and other modules as
// in others. It does not name the standard library. Exception: net/http, because only adapters,
// and what they share, know a framework. If you extend a row, say in the commit why.
var layers = map[string]string{
	"internal/store":    "",
	"internal/inflight": "",
	"internal/backoff":  "",
	"internal/bridge":   "",
	"internal/kind":     "",
	"internal/engine":   "store inflight backoff",

	"internal/redis/keyspace":    "store",
	"internal/redis/script":      "",
	"internal/redis/topology":    "redis",
	"internal/redis/command":     "redis script topology store",
	"internal/redis/pipeline":    "redis command topology inflight backoff store",
	"internal/redis/pubsub":      "redis command keyspace topology inflight backoff",
	"internal/redis/redisstore":  "redis uuid command keyspace pipeline pubsub script topology inflight store",
	"internal/redis/registry":    "redis command keyspace",
	"internal/redis/readiness":   "redis command keyspace redisstore script topology inflight store",
	"internal/redis/quorumstore": "redis command redisstore topology inflight store",

	"core":             "redis bridge engine keytext kind quorumstore readiness redisstore registry script",
	"core/locktest":    "redis miniredis core",
	"console":          "net/http core inspect",
	"inspect":          "redis core bridge command keyspace redisstore registry script store topology",
	"adapter":          "net/http core bridge answer httpbody keytext kind",
	"adapter/protomsg": "protobuf core adapter annotated fieldpath kind",

	"internal/annotatedpb": "protobuf",
	"internal/annotated":   "protobuf core adapter annotatedpb bridge fieldpath",
	"internal/answer":      "net/http",
	"internal/keytext":     "kind bridge",
	"internal/fieldpath":   "protobuf core keytext",
	"internal/httpbody":    "net/http keytext kind",

	"nethttplock": "net/http core adapter",
	"ginlock":     "gin net/http core adapter nethttplock",
	"echolock":    "echo net/http core adapter nethttplock",
	"echov5lock":  "echov5 net/http core adapter nethttplock",
	"fiberlock":   "fiber github.com/valyala/fasthttp net/http core adapter",
	"grpclock":    "grpc rpc protobuf core adapter protomsg",
	"protolock":   "grpc protobuf core adapter grpclock protomsg",
	"connectlock": "connect net/http rpc protobuf core adapter protomsg",
	"otellock": "go.opentelemetry.io/otel go.opentelemetry.io/otel/attribute go.opentelemetry.io/otel/codes " +
		"go.opentelemetry.io/otel/metric go.opentelemetry.io/otel/propagation go.opentelemetry.io/otel/trace net/http core",
	"annotations/reqlockv1": "protobuf",
	"cmd/reqlock":           "redis protobuf net/http core inspect nethttplock annotated command keyspace",

	"internal/testkit/suite":         "goleak",
	"internal/testkit/child":         "",
	"internal/testkit/subprocess":    "child",
	"internal/testkit/programtb":     "",
	"internal/testkit/redistest":     "redis child suite",
	"internal/testkit/storetest":     "redis miniredis store redistest suite",
	"internal/testkit/gauges":        "core",
	"internal/testkit/lockbench":     "redis miniredis net/http core redistest",
	"internal/testkit/adaptertest":   "redis net/http core bridge redistest",
	"internal/testkit/annotatedtest": "grpc protobuf annotatedpb",
}

// others names modules by their paths. A row has the whole paths of packages of any other module.
var others = map[string]string{
	"connect":   "connectrpc.com/connect",
	"echo":      "github.com/labstack/echo/v4",
	"echov5":    "github.com/labstack/echo/v5",
	"fiber":     "github.com/gofiber/fiber/v3",
	"gin":       "github.com/gin-gonic/gin",
	"goleak":    "go.uber.org/goleak",
	"grpc":      "google.golang.org/grpc",
	"miniredis": "github.com/alicebob/miniredis/v2",
	"net/http":  "net/http",
	"protobuf":  "google.golang.org/protobuf",
	"redis":     "github.com/redis/go-redis/v9",
	"rpc":       "google.golang.org/genproto/googleapis/rpc",
	"uuid":      "github.com/google/uuid",
}

// nameOf returns the name of an imported package in a row, or "" if rows do not name it.
func nameOf(imported string) string {
	for name, prefix := range others {
		if strings.HasPrefix(imported+"/", prefix+"/") {
			return name
		}
	}
	ours := strings.TrimPrefix(imported, module+"/")
	if _, ok := layers[ours]; ok {
		return path.Base(ours)
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	return imported
}

func TestEachPackageImportsWhatItsRowSays(t *testing.T) {
	t.Parallel()
	files(t, ".go") // go test keeps a result until a file changes that a test has read itself
	const format = `{{.ImportPath}};{{join .Imports " "}};{{join .IgnoredGoFiles " "}}`
	list := exec.CommandContext(t.Context(), "go", "list", "-e", "-f", format, "work")    // all modules of go.work
	list.Dir, list.Env = root, append(os.Environ(), "GOWORK=", "GOFLAGS=", "GOPROXY=off") // with -e, nothing is downloaded
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Collect(maps.Keys(others))
	for line := range strings.Lines(string(out)) {
		parts := strings.Split(strings.TrimPrefix(strings.TrimSpace(line), module+"/"), ";")
		name, imports, ignored := parts[0], strings.Fields(parts[1]), parts[2]
		row, ok := layers[name]
		got, want := []string{""}, append(strings.Fields(row), "")
		for _, imported := range imports {
			if n := nameOf(imported); !slices.Contains(got, n) {
				got = append(got, n)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		switch top, _, _ := strings.Cut(name, "/"); {
		case top == "tests": // tests import what they test
		case top == "examples":
			if slices.ContainsFunc(imports, func(i string) bool { return strings.HasPrefix(i, module+"/internal/") }) {
				t.Errorf("%s imports an internal package, and an example shows what users can do", name)
			}
		case !ok:
			t.Errorf("layers has no row of %s: add one with what the package may import", name)
		case !slices.Equal(got, want):
			t.Errorf("%s imports %q, and its row in layers has %q", name, got, want)
		case slices.Contains(names, path.Base(name)):
			t.Errorf("two packages in layers have the name %s", path.Base(name))
		case ignored != "" && !strings.HasPrefix(name, "internal/testkit/"): // which import the standard library there
			t.Errorf("%s: go list does not read %q, so list the imports on each system", name, ignored)
		default:
			names = append(names, path.Base(name))
		}
	}
	for name := range layers {
		if !slices.Contains(names, path.Base(name)) && !t.Failed() {
			t.Errorf("layers has a row of %s, and there is no such package", name)
		}
	}
}
