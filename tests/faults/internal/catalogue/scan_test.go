package catalogue_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/reqlock/reqlock/tests/faults/internal/catalogue"
)

// file returns a repository with one file.
func file(name, source string) fstest.MapFS {
	return fstest.MapFS{name: {Data: []byte(source)}}
}

const header = "package p\n\nimport \"testing\"\n\n"

func TestDirectives(t *testing.T) {
	proof := func(row int, kind catalogue.Kind, note string) catalogue.Proof {
		return catalogue.Proof{Row: row, Kind: kind, Note: note, Test: "TestX", File: "a/b/x_test.go"}
	}
	for directive, want := range map[string][]catalogue.Proof{
		"//faults:row 27":                           {proof(27, catalogue.Holds, "")},
		"//faults:row 8, 9":                         {proof(8, catalogue.Holds, ""), proof(9, catalogue.Holds, "")},
		"//faults:row 8,9":                          {proof(8, catalogue.Holds, ""), proof(9, catalogue.Holds, "")},
		"//faults:row 3: why":                       {proof(3, catalogue.Holds, "why")},
		"//faults:row 15 emulated: PEXPIRE: a jump": {proof(15, catalogue.Emulated, "PEXPIRE: a jump")},
		"//faults:row 16, 24 loss":                  {proof(16, catalogue.Loss, ""), proof(24, catalogue.Loss, "")},
		"//faults:row 14 limit":                     {proof(14, catalogue.Limit, "")},
		"//faults:row 1\n//faults:row 2":            {proof(1, catalogue.Holds, ""), proof(2, catalogue.Holds, "")},
		"// What it shows.\n//\n//faults:row 1":     {proof(1, catalogue.Holds, "")},
		"// It is not //faults:row 1.":              nil,
		"//faults:other 1":                          nil,
	} {
		got, err := catalogue.Scan(file("a/b/x_test.go", header+directive+"\nfunc TestX(t *testing.T) {}\n"))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %+v, %v", directive, got, err)
		}
	}
}

func TestDirectivesThatAreWrong(t *testing.T) {
	const at = "a/b/x_test.go"
	for what, test := range map[string]struct{ name, source string }{
		"no number":           {at, "//faults:row\nfunc TestX(t *testing.T) {}"},
		"a word":              {at, "//faults:row x\nfunc TestX(t *testing.T) {}"},
		"an empty note":       {at, "//faults:row 1:\nfunc TestX(t *testing.T) {}"},
		"an unknown kind":     {at, "//faults:row 1 surely\nfunc TestX(t *testing.T) {}"},
		"an absent one":       {at, "//faults:row 7 absent\nfunc TestX(t *testing.T) {}"},
		"a list that ends":    {at, "//faults:row 1,\nfunc TestX(t *testing.T) {}"},
		"another directive":   {at, "//faults:rows 1\nfunc TestX(t *testing.T) {}"},
		"a helper":            {at, "//faults:row 1\nfunc helper(t *testing.T) {}"},
		"no test's name":      {at, "//faults:row 1\nfunc Testx(t *testing.T) {}"},
		"TestMain":            {at, "//faults:row 1\nfunc TestMain(m *testing.M) {}"},
		"a fuzz of a test":    {at, "//faults:row 1\nfunc FuzzX(t *testing.T) {}"},
		"a benchmark":         {at, "//faults:row 1\nfunc BenchmarkX(b *testing.B) {}"},
		"a method":            {at, "type s struct{}\n\n//faults:row 1\nfunc (s) TestX(t *testing.T) {}"},
		"a result":            {at, "//faults:row 1\nfunc TestX(t *testing.T) int { return 0 }"},
		"no parameter":        {at, "//faults:row 1\nfunc TestX() {}"},
		"a variable":          {at, "//faults:row 1\nvar X testing.T"},
		"nothing below":       {at, "//faults:row 1\n\nfunc TestX(t *testing.T) {}"},
		"inside":              {at, "func TestX(t *testing.T) {\n\t//faults:row 1\n}"},
		"no file of tests":    {"a/b/x.go", "//faults:row 1\nfunc TestX(t *testing.T) {}"},
		"what does not parse": {at, "//faults:row 1\nfunc TestX("},
	} {
		got, err := catalogue.Scan(file(test.name, header+test.source+"\n"))
		if err == nil || len(got) > 0 || !strings.Contains(err.Error(), test.name) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
}

// A test that is not built shows nothing.
func TestBuildConstraints(t *testing.T) {
	test := header + "//faults:row 1\nfunc TestX(t *testing.T) {}\n"
	for _, c := range []struct {
		name, constraint string
		built            bool
	}{
		{"x_test.go", "", true},
		{"x_test.go", "never", false},
		{"x_test.go", "race", false},
		{"x_test.go", "windows", false},
		{"x_test.go", "!linux", false},
		{"x_test.go", "ignore || arm64", false},
		{"x_test.go", "unix", true},
		{"x_test.go", "!race && go1.20", true},
		{"x_linux_test.go", "", true},
		{"x_windows_test.go", "", false},
		{"_x_test.go", "", false},
	} {
		source := test
		if c.constraint != "" {
			source = "//go:build " + c.constraint + "\n\n" + source
		}
		got, err := catalogue.Scan(file("a/"+c.name, source))
		if (err == nil) != c.built || (len(got) == 1) != c.built {
			t.Errorf("%s with %q: %+v, %v", c.name, c.constraint, got, err)
		}
	}
}

// Fuzz targets are tests, too. Scan skips the folders that the go command skips, and
// reports several mistakes at once.
func TestScanOfARepository(t *testing.T) {
	test := "//faults:row 1\nfunc TestX(t *testing.T) {}\n"
	got, err := catalogue.Scan(fstest.MapFS{
		"b/x_test.go":              {Data: []byte(header + test)},
		"a/x_test.go":              {Data: []byte(header + "//faults:row 2\nfunc FuzzX(f *testing.F) {}\n")},
		"a/helper.go":              {Data: []byte("package p\n\nconst text = \"//faults:row 1\"\n")},
		"a/notes.md":               {Data: []byte(test)},
		"a/bad_test.go":            {Data: []byte(header + "//faults:row\nfunc TestX(t *testing.T) {}\n")},
		"c/bad_test.go":            {Data: []byte(header + "//faults:row 1\nfunc helper() {}\n")},
		".git/x_test.go":           {Data: []byte(header + test)},
		"a/_old/x_test.go":         {Data: []byte(header + test)},
		"a/testdata/src/x_test.go": {Data: []byte(header + test)},
	})
	var names []string
	for _, proof := range got {
		names = append(names, proof.Name())
	}
	if want := []string{"a.FuzzX", "b.TestX"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	for _, name := range []string{"a/bad_test.go", "c/bad_test.go"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not tell of %s", err, name)
		}
	}
}
