package docs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/tests/docs"
)

// findings are pages, and what is wrong in them: the number of the line, and how the text begins.
var findings = map[string]struct {
	page string
	want []string
}{
	"a snippet in a function": {
		page: "```go\nvar key = \"account:42\"\nlease, err := locks.Lock(ctx, key)\nunused := 1\nreturn nil, err\n```",
	},
	"a snippet at the level of the file": {
		page: "```go\n// pay is not that of the prelude.\nfunc pay(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }\n\ntype mux int\n```",
	},
	"a wrong name, and its consequence": {
		page: "```sh\ngo run .\n```\n```go\nlocks := core.Must(core.Now(rdb))\n```",
		want: []string{"5: undefined: core.Now"},
	},
	"a wrong type, in a list": {
		page: "- text\n\n  ```go\n  locks.With(\n  \tcore.WithTTL(\"10s\"),\n  )\n  ```",
		want: []string{`5: cannot use "10s" (untyped string constant) as time.Duration value in argument to core.WithTTL`},
	},
	"wrong syntax": {
		page: "```go\nlocks.Do(ctx, ...)\n```",
		want: []string{"2: expected operand, found '...'"},
	},
	"a name of another prelude": {
		page: "<!-- go: gin -->\n```go\nr.POST(\"/\", pay)\n```\n```go\nr.POST(\"/\", pay)\n```",
		want: []string{"6: r.POST undefined (type *http.Request has no field or method POST)"},
	},
	"an unknown prelude": {
		page: "<!-- go: fiber -->\n```go\nx()\n```",
		want: []string{`3: there is no prelude "fiber"`},
	},
	"a file": {
		page: "```go\npackage main\n\nimport \"os\"\n\nfunc help() {\n\tunused := 1\n}\n```",
		want: []string{"4: \"os\" imported and not used", "7: declared and not used: unused"},
	},
	"a file with a package that does not exist": {
		page: "```go\npackage bank\n\nimport \"github.com/reqlock/reqlock/metrics\"\n\nvar _ = metrics.New\n```",
		want: []string{"4: could not import github.com/reqlock/reqlock/metrics"},
	},
}

func TestFindings(t *testing.T) {
	var blocks []docs.Block
	for name, test := range findings {
		found, err := docs.Blocks("docs/"+name, test.page+"\n")
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, found...)
	}
	if _, err := docs.Blocks("page.md", "text\n```go\nx()\n"); err == nil {
		t.Error("a block that is never closed: no error")
	}
	got := make(map[string][]string)
	for _, finding := range check(t, blocks) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(finding, "docs/"), ":")
		got[name] = append(got[name], rest)
	}
	for name, test := range findings {
		if !slices.EqualFunc(got[name], test.want, strings.HasPrefix) {
			t.Errorf("%s: got %q, want %q", name, got[name], test.want)
		}
	}
}
