// Command write writes the generated pages and pictures of the folder docs again. It runs in the folder of
// package docs, by go generate.
package main

import (
	"log"
	"os"
	"path"
	"path/filepath"

	"github.com/reqlock/reqlock/tests/docs/configuration"
	"github.com/reqlock/reqlock/tests/docs/picture"
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
	files := map[string]string{configuration.File: page}
	for name, svg := range picture.All() {
		files[path.Join(picture.Dir, name)] = svg
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte(text), 0o644); err != nil { //nolint:gosec // the files are public
			return err
		}
	}
	return nil
}
