// Command write writes the generated pages of the folder docs again. It runs in the folder of
// package docs, by go generate.
package main

import (
	"log"
	"os"
	"path/filepath"

	"github.com/reqlock/reqlock/tests/docs/configuration"
)

func main() {
	log.SetFlags(0)
	if err := write("../.."); err != nil {
		log.Fatal(err)
	}
}

func write(root string) error {
	page, err := configuration.Page(root)
	if err != nil {
		return err
	}
	file := filepath.Join(root, filepath.FromSlash(configuration.File))
	return os.WriteFile(file, []byte(page), 0o644) //nolint:gosec // the file is public
}
