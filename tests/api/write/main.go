// Command write writes the text of the exported API again. It runs in the folder of
// package api, by go generate.
package main

import (
	"context"
	"log"
	"os"
	"path/filepath"

	"github.com/reqlock/reqlock/tests/api"
)

func main() {
	log.SetFlags(0)
	if err := write("../.."); err != nil {
		log.Fatal(err)
	}
}

func write(root string) error {
	texts, err := api.Texts(context.Background(), root)
	if err != nil {
		return err
	}
	for name, text := range texts {
		file := filepath.Join(root, filepath.FromSlash(api.File(name)))
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // the file is public
			return err
		}
	}
	return nil
}
