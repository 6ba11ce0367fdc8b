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

// exampleVariable finds the key function of a lock in examples that is a variable.
var exampleVariable = regexp.MustCompile(`(?:(?:Middleware|UnaryServerInterceptor|StreamServerInterceptor|ServerOptions)\(\s*\w+,|\bAlso\(|_FullMethodName:)` +
	`[\s/]*(\w+)\s*[,)}]`)

// exampleAssignment finds the variables that are set to a key function.
var exampleAssignment = regexp.MustCompile(`(\w+)\s*:?=\s*((?:core|nethttplock|ginlock|echolock|grpclock)\.\w+)[[(]`)

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
			inEndpoint := strings.Contains(string(text[match[0]:match[2]]), "_FullMethodName") && strings.Contains(line, "IdempotencyKey()")
			if found++; !isNamed(string(text[match[2]:match[3]])) && !inEndpoint {
				t.Errorf("%s: the key of a lock has no name: %s", name, line)
			}
		}
		for _, variable := range exampleVariable.FindAllSubmatch(text, -1) {
			for _, set := range exampleAssignment.FindAllSubmatch(text, -1) {
				if string(set[1]) != string(variable[1]) {
					continue
				}
				if found++; !isNamed(string(set[2])) {
					t.Errorf("%s: the key of a lock has no name: %s", name, set[0])
				}
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

// isNamed reports whether a function makes a key with a name, or chooses one.
func isNamed(function string) bool {
	names := []string{".Named", ".When", ".Literal", ".ByMethod"}
	names = append(names, ".Permits", ".Shared", ".SharedWhen", ".SharedReads") // around a variable
	return slices.ContainsFunc(names, func(suffix string) bool { return strings.HasSuffix(function, suffix) })
}

// hasModule reports whether the folder is a module of its own.
func hasModule(files fs.FS, dir string) bool {
	_, err := fs.Stat(files, path.Join(dir, "go.mod"))
	return err == nil
}
