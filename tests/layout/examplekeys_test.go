package layout

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exampleKey finds the key function of a lock in examples: a comment may wrap its line.
var exampleKey = regexp.MustCompile(`(?:(?:Middleware|UnaryServerInterceptor|StreamServerInterceptor)\(\s*\w+,|\bAlso\(|core\.When\(\w+,|_FullMethodName:)` +
	`[\s/]*(?:` + sharedKey + `[\s/]*)?((?:core|nethttplock|ginlock|echolock|grpclock)\.\w+)`)

// sharedKey is what may stand around the key function, and does not name it.
const sharedKey = `(?:core\.Permits\(\d+,|core\.Shared\(|core\.SharedWhen\(\w+,|\w+\.SharedReads\()`

// Users copy examples to a second route. Without a name, account 42 and user 42 then have the
// same lock. Exception: the keys of idempotent endpoints contain the route.
func TestExamplesNameTheirKeys(t *testing.T) {
	files, found := os.DirFS(root(t)), 0
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (base[0] == '.' || hasModule(files, name) || name == "internal" || name == "tests"):
			return fs.SkipDir
		case path.Ext(name) == ".md", path.Ext(name) == ".go" && !strings.HasSuffix(base, "_test.go"), base == "example_test.go":
		default:
			return nil
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		for _, match := range exampleKey.FindAllStringSubmatchIndex(string(text), -1) {
			line, _, _ := strings.Cut(string(text[match[2]:]), "\n")
			function := string(text[match[2]:match[3]])
			names := []string{".Named", ".When", ".Literal", ".ByMethod"}
			names = append(names, ".Permits", ".Shared", ".SharedWhen", ".SharedReads") // around a variable
			named := slices.ContainsFunc(names, func(suffix string) bool {
				return strings.HasSuffix(function, suffix)
			})
			inEndpoint := strings.Contains(string(text[match[0]:match[2]]), "_FullMethodName") && strings.Contains(line, "IdempotencyKey()")
			if found++; !named && !inEndpoint {
				t.Errorf("%s: the key of a lock has no name: %s", name, line)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 20 {
		t.Errorf("found only %d keys", found)
	}
}
