package layout

import (
	"go/parser"
	"go/token"
	"maps"
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
	"internal/redis/command":     "redis topology store",
	"internal/redis/pipeline":    "redis command topology inflight backoff store",
	"internal/redis/pubsub":      "redis command keyspace topology inflight backoff",
	"internal/redis/redisstore":  "redis uuid command keyspace pipeline pubsub script topology inflight store",
	"internal/redis/readiness":   "redis command keyspace redisstore script topology inflight store",
	"internal/redis/quorumstore": "redis command redisstore topology inflight store",

	"core":             "redis bridge engine keytext kind quorumstore readiness redisstore",
	"core/locktest":    "redis miniredis core",
	"adapter":          "net/http core bridge answer httpbody keytext",
	"adapter/protomsg": "protobuf core adapter annotated fieldpath",

	"internal/annotatedpb": "protobuf",
	"internal/annotated":   "protobuf core adapter annotatedpb bridge fieldpath",
	"internal/answer":      "net/http",
	"internal/keytext":     "kind bridge",
	"internal/fieldpath":   "protobuf core keytext",
	"internal/httpbody":    "net/http keytext kind",

	"nethttplock": "net/http core adapter",
	"ginlock":     "gin net/http core adapter nethttplock",
	"echolock":    "echo net/http core adapter nethttplock",
	"grpclock":    "grpc rpc protobuf core adapter protomsg",
	"protolock":   "grpc protobuf core adapter grpclock protomsg",
	"otellock": "go.opentelemetry.io/otel go.opentelemetry.io/otel/attribute go.opentelemetry.io/otel/codes " +
		"go.opentelemetry.io/otel/metric go.opentelemetry.io/otel/trace net/http core",
	"annotations/reqlockv1": "protobuf",
	"cmd/reqlock":           "protobuf annotated",

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
	"echo":      "github.com/labstack/echo/v4",
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
	if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
		if _, ok := layers[ours]; ok {
			return path.Base(ours)
		}
		return imported
	}
	for name, prefix := range others {
		if imported == prefix || strings.HasPrefix(imported, prefix+"/") {
			return name
		}
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	return imported
}

// imports returns what the files of each package import, except its tests, by the folder of the package. It also
// reads files that are not for this system.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	for name, text := range files(t, ".go") {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "tests/") { // tests import what they test
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		all := found[path.Dir(name)]
		for _, spec := range tree.Imports {
			all = append(all, strings.Trim(spec.Path.Value, `"`))
		}
		found[path.Dir(name)] = all
	}
	return found
}

func TestEachPackageImportsWhatItsRowSays(t *testing.T) {
	found := imports(t)
	for name, all := range found {
		row, ok := layers[name]
		isExample, allowed, used := strings.HasPrefix(name, "examples/"), strings.Fields(row), []string{}
		if !ok && !isExample {
			t.Errorf("layers has no row of %s: add one with what the package may import", name)
			continue
		}
		for _, imported := range all {
			n := nameOf(imported)
			used = append(used, n)
			switch {
			case isExample && strings.HasPrefix(imported, module+"/internal/"):
				t.Errorf("%s imports %s, and an example shows what users can do", name, imported)
			case !isExample && n != "" && !slices.Contains(allowed, n):
				t.Errorf("%s imports %s, and its row in layers does not allow that", name, imported)
			}
		}
		for _, n := range allowed {
			if !slices.Contains(used, n) {
				t.Errorf("the row of %s allows %s, and the package does not import that", name, n)
			}
		}
	}
	names := slices.Collect(maps.Keys(others))
	for name := range layers {
		if _, ok := found[name]; !ok {
			t.Errorf("layers has a row of %s, and there is no such package", name)
		}
		if slices.Contains(names, path.Base(name)) {
			t.Errorf("two packages in layers have the name %s", path.Base(name))
		}
		names = append(names, path.Base(name))
	}
}
