package oteltest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/tests/docs"
)

// root is the repository, seen from this package.
const root = "../.."

// The page describes each panel of the dashboard, in its order, and no other one.
func TestThePageDescribesThePanels(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "observability.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Dashboard\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, rows, _ := strings.Cut(section, "|---|---|\n")
	var got, want []string
	for line := range strings.Lines(rows) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			got = append(got, strings.TrimSpace(cells[1]))
		}
	}
	for _, panel := range readDashboard(t).Panels {
		if panel.Type != "row" {
			want = append(want, panel.Title)
		}
	}
	if !slices.Equal(got, want) || len(want) < 14 {
		t.Errorf("docs/observability.md describes the panels %q, want %q", got, want)
	}
}

// The page shows the filter that TestRedisotelBesideLocks tests, and its code compiles.
func TestThePageShowsTheFilter(t *testing.T) {
	t.Parallel()
	blocks, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	blocks = slices.DeleteFunc(blocks, func(b docs.Block) bool { return b.Prelude != "otel" })
	preludes := filepath.Join(root, "tests", "docs", "prelude")
	findings, err := docs.Check(t.Context(), ".", map[string]docs.Prelude{
		"otel": {filepath.Join(preludes, "common"), "prelude"},
	}, blocks)
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range findings {
		t.Error(finding)
	}
	source, err := os.ReadFile("redisotel_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, filter, _ := strings.Cut(string(source), "\nfunc isLock(")
	filter, _, _ = strings.Cut(filter, "\n}\n")
	if filter == "" || !slices.ContainsFunc(blocks, func(b docs.Block) bool { return strings.Contains(b.Text, "func isLock("+filter+"\n}\n") }) {
		t.Error("no page shows the function isLock of this package")
	}
}
