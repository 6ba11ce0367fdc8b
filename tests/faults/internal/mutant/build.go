package mutant

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Tree has the directories of the product and of its campaign.
type Tree struct {
	Product, Campaign string
}

// FindTree finds the tree. This process must run in the module of the campaign.
func FindTree(ctx context.Context) (Tree, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/reqlock/reqlock", "github.com/reqlock/reqlock/tests/faults").CombinedOutput()
	if err != nil {
		return Tree{}, fmt.Errorf("find the sources, in the directory faults: %w\n%s", err, out)
	}
	dirs := strings.Fields(string(out))
	if len(dirs) != 2 {
		return Tree{}, fmt.Errorf("find the sources: go list says %q", out)
	}
	return Tree{dirs[0], dirs[1]}, nil
}

// Build builds the program of the campaign with the mutant, in a directory, and returns the
// path of the program.
func (m Mutant) Build(ctx context.Context, tree Tree, dir string) (program string, err error) {
	overlay, err := m.Apply(tree.Product, dir)
	if err != nil {
		return "", err
	}
	program = filepath.Join(dir, "faults")
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", program, ".") //nolint:gosec // our own files
	build.Dir = tree.Campaign
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mutant %s does not compile: %w\n%s", m.Name, err, out)
	}
	return program, nil
}
