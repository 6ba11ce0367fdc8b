package docs

import (
	"os"
	"path/filepath"
)

// Pages returns the blocks of README.md and of the pages of the folder docs. The root is the
// folder of the repository.
func Pages(root string) ([]Block, error) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return nil, err
	}
	var all []Block
	for _, file := range append([]string{filepath.Join(root, "README.md")}, files...) {
		text, err := os.ReadFile(file) //nolint:gosec // a page of the repository
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return nil, err
		}
		blocks, err := Blocks(filepath.ToSlash(name), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, blocks...)
	}
	return all, nil
}
