package main

import (
	"strings"
	"testing"
	"time"
)

// fakeCampaign is the program of a campaign. The file that tells whether the mistake was made
// is embedded, as the scripts of the product are.
const fakeCampaign = `package main

import (
	_ "embed"
	"os"
)

//go:embed mistake.txt
var mistake string

func main() {
	seed, dir := os.Args[6], os.Args[len(os.Args)-1]
	violations := ""
	switch {
	case mistake == "wrong\n":
		os.Exit(2)
	case mistake == "made\n" && seed == "8":
		violations = "errors: w\nfences: x\nfencesX: y\nfences: z\n"
	case mistake == "made\n":
		violations = "errors: b\n"
	default:
		return
	}
	_ = os.MkdirAll(dir+"/run", 0o700)
	_ = os.WriteFile(dir+"/run/violations.txt", []byte(violations), 0o600)
	os.Exit(1)
}
`

func TestCampaignFindsMutants(t *testing.T) {
	t.Parallel()
	product := writeFiles(t, map[string]string{
		"go.mod": "module example.org/product\n\ngo 1.26\n", "main.go": fakeCampaign, "mistake.txt": "none\n",
	})
	c := campaignFinder{tree{product, product}, 7}
	for made, want := range map[string]string{
		"made":    "fences (fences: x) in run 2, 1 others failed",
		"another": "",
		"wrong":   "exit status 2",
	} {
		text := "M.\n\nfaults: ^nothing-fails$\non: server\nchecks: ^fences$\n\n--- mistake.txt\n@@\n-none\n+" + made + "\n"
		m, err := parse(product, made, text)
		if err != nil {
			t.Fatal(err)
		}
		by, err := c.find(t.Context(), m, t.TempDir())
		if err == nil && by != want || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: found by %q, %v; want %q", made, by, err, want)
		}
	}
}

const sampled = `package product

var calls int

func Sign(n int) int { if n < 0 { return -1 }; return 1 }

func Half(n int) int { calls++; return n / 2 }

func Join(a, b string) string { return a + b }

func Count(to int) (n int) { for n != to { n++ }; return n }

func Late(a, b int) int { return a - b }

func Left(a, b int) int { return b - a }
`

// TestLate fails only in its first run, as a test may on a busy machine. A leak fails no test.
const itsTests = `package product

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if code := m.Run(); code != 0 || Left(1, 2) != 1 {
		println("goroutines are left: 1")
		os.Exit(1)
	}
}

func TestAll(t *testing.T) {
	if Sign(0) != 1 || Half(4) != 2 || Join("a", "b") != "ab" || Count(3) != 3 {
		t.Error("no")
	}
}

func TestLate(t *testing.T) {
	if _, err := os.Stat("failed"); Late(2, 1) != 1 && err != nil {
		_ = os.WriteFile("failed", nil, 0o600)
		t.Error("no")
	}
}
`

func TestPackageTestsFindSample(t *testing.T) {
	t.Parallel()
	dir := writeFiles(t, map[string]string{
		"go.mod": "module example.org/product\n\ngo 1.26\n", "product.go": sampled, "product_test.go": itsTests,
	})
	all, err := sample(dir, 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		`"<=" in "func Sign`:                   "TestAll",
		`"if false { calls++ }" in "func Half`: "",
		`"-" in "func Join`:                    "does not compile",
		`"==" in "func Count`:                  "TestAll",
		`"if false { n++ }" in "func Count`:    "panic: test timed out",
		`"+" in "func Late`:                    "unstable",
		`"+" in "func Left`:                    "goroutines are left: 1",
	}
	if len(all) != len(want) {
		t.Errorf("%d changes, want %d", len(all), len(want))
	}
	for _, m := range all {
		by, _, err := testOne(t.Context(), m, packageTests{dir, "", 2 * time.Second}.find)
		if err != nil {
			by = err.Error()
		}
		found := false
		for prefix, wantBy := range want {
			if strings.HasPrefix(m.mistake, prefix) {
				found = strings.HasPrefix(by, wantBy) && (by == "") == (wantBy == "")
			}
		}
		if !found {
			t.Errorf("%s: %s: found by %q", m.name, m.mistake, by)
		}
	}
}
