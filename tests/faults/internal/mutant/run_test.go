package mutant

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeCampaign is the program of a campaign. It finds the mistake in the run "good", fails
// in the run "wrong", and does not know the run "unknown".
const fakeCampaign = `package main

import (
	_ "embed"
	"os"
)

//go:embed mistake.txt
var mistake string

func main() {
	dir := os.Args[len(os.Args)-1] + "/" + os.Args[1] // after -out
	must(os.MkdirAll(dir, 0o700))
	switch os.Args[1] {
	case "unknown":
		os.Exit(2)
	case "wrong":
		must(os.WriteFile(dir+"/found", nil, 0o600))
		os.Exit(1)
	case "noise":
		must(os.WriteFile(dir+"/found", []byte("errors: b\n"), 0o600))
		os.Exit(1)
	case "good":
		if mistake == "made\n" {
			must(os.WriteFile(dir+"/found", []byte("errors: w\nb: x\nbc: y\nb: z\n"), 0o600))
			os.Exit(1)
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
`

func TestMutantIsKilled(t *testing.T) {
	product := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/product\n\ngo 1.26\n", "main.go": fakeCampaign, "mistake.txt": "none\n",
	} {
		if err := os.WriteFile(filepath.Join(product, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := Parse("made", head+"--- mistake.txt\n@@\n-none\n+made\n")
	if err != nil {
		t.Fatal(err)
	}
	other, err := Parse("other", head+"--- mistake.txt\n@@\n-none\n+another\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		mutant Mutant
		runs   string
		want   Result
		says   string
	}{
		"found at last":       {made, "quiet wrong noise good good", Result{Runs: 4, Failed: 2, KilledBy: []string{"b", "bc"}, Violation: "b: x"}, ""},
		"survived":            {other, "quiet good wrong", Result{Runs: 3, Failed: 1}, ""},
		"a run that is none":  {made, "unknown good", Result{Runs: 1}, "faults unknown"},
		"it does not compile": {Mutant{Name: "m", edits: []edit{{"main.go", "package main\n", "package\n"}}}, "good", Result{}, "does not compile"},
	} {
		t.Run(name, func(t *testing.T) {
			var runs [][]string
			for _, run := range strings.Fields(c.runs) {
				runs = append(runs, []string{run})
			}
			got, err := c.mutant.Test(t.Context(), Tree{product, product}, t.TempDir(), runs, "found")
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want %q", err, c.says)
			}
			if got.Runs != c.want.Runs || got.Failed != c.want.Failed || got.Violation != c.want.Violation || !slices.Equal(got.KilledBy, c.want.KilledBy) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
