package docs

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
)

// module is the path of the main module.
const module = "github.com/reqlock/reqlock"

// importable are packages that a snippet may use by the last part of their path.
var importable = []string{
	"bytes", "cmp", "context", "crypto/hmac", "crypto/sha256", "crypto/tls", "database/sql", "encoding/hex",
	"encoding/json", "errors", "expvar", "fmt", "io", "log", "log/slog", "maps", "net", "net/http", "net/http/httptest",
	"net/http/httputil", "net/url", "os", "os/signal", "runtime/debug", "slices", "strconv", "strings", "sync", "sync/atomic", "syscall",
	"testing", "testing/synctest", "time",

	module + "/connectlock", module + "/console", module + "/core", module + "/core/locktest", module + "/echolock", module + "/echov5lock", module + "/fiberlock",
	module + "/ginlock", module + "/grpclock", module + "/inspect",
	module + "/nethttplock", module + "/otellock", module + "/protolock",

	"connectrpc.com/connect", "github.com/bsm/redislock", "github.com/gin-gonic/gin", "github.com/labstack/echo/v4/middleware",
	"github.com/redis/rueidis", "github.com/redis/rueidis/rueidislock", "google.golang.org/genproto/googleapis/rpc/errdetails",
	"google.golang.org/grpc", "google.golang.org/grpc/codes", "google.golang.org/grpc/credentials/insecure",
	"google.golang.org/grpc/metadata", "google.golang.org/grpc/peer", "google.golang.org/grpc/status",
	"google.golang.org/protobuf/proto",
}

// renamed are the packages that a snippet uses by another name, by that name.
var renamed = map[string]string{
	"echo":      "github.com/labstack/echo/v4",
	"fiber":     "github.com/gofiber/fiber/v3",
	"goredis":   "github.com/go-redsync/redsync/v4/redis/goredis/v9",
	"pb":        module + "/examples/bankpb",
	"rand":      "math/rand/v2",
	"redis":     "github.com/redis/go-redis/v9",
	"redisotel": "github.com/redis/go-redis/extra/redisotel/v9",
	"redsync":   "github.com/go-redsync/redsync/v4",
}

// importPath returns the path of the package that a snippet uses by this name, or "".
func importPath(name string) string {
	if i := slices.IndexFunc(importable, func(p string) bool { return path.Base(p) == name }); i >= 0 {
		return importable[i]
	}
	return renamed[name]
}

// addImports adds imports of the packages that a snippet uses. An import can be superfluous, if the
// snippet has a variable of that name.
func addImports(file *ast.File) {
	have := make(map[string]bool)
	added := &ast.GenDecl{Tok: token.IMPORT, Lparen: file.Name.End()}
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if used, ok := selector.X.(*ast.Ident); ok && !have[used.Name] && importPath(used.Name) != "" {
			have[used.Name] = true
			path := &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(importPath(used.Name))}
			spec := &ast.ImportSpec{Name: ast.NewIdent(used.Name), Path: path}
			added.Specs, file.Imports = append(added.Specs, spec), append(file.Imports, spec)
		}
		return true
	})
	if len(added.Specs) > 0 {
		file.Decls = append([]ast.Decl{added}, file.Decls...)
	}
}

// imported returns the paths that files import.
func imported(files []*ast.File) (paths []string) {
	for _, file := range files {
		for _, spec := range file.Imports {
			if p, err := strconv.Unquote(spec.Path.Value); err == nil {
				paths = append(paths, p)
			}
		}
	}
	return paths
}
