package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// A mutant is one mistake in the product.
type mutant struct {
	name    string
	mistake string
	files   map[string]string // the changed files: their texts by their paths

	// What the campaign needs: expressions for the names of the faults that show the mistake
	// and for the checks that find it, and the deployment. Violations of other checks prove
	// nothing, because a busy machine may cause them.
	faults, on, checks string
}

// overlay writes the changed files into a directory, and beside them the file for the flag
// -overlay of the go command, whose path it returns.
func (m mutant) overlay(dir string) (string, error) {
	replace := make(map[string]string)
	for path, text := range m.files {
		written := filepath.Join(dir, strconv.Itoa(len(replace))+"-"+filepath.Base(path))
		if err := os.WriteFile(written, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[path] = written
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// A tree has the directories of the product and of its fault campaign.
type tree struct{ product, campaign string }

// findTree returns the tree that this process runs in.
func findTree(ctx context.Context) (tree, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	dir := filepath.Dir(strings.TrimSpace(string(out)))
	if err != nil || filepath.Base(dir) != "faults" {
		return tree{}, fmt.Errorf("run this in the folder tests/faults, not in %s: %w", dir, err)
	}
	return tree{product: filepath.Dir(filepath.Dir(dir)), campaign: dir}, nil
}
