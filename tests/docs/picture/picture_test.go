package picture_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/docs/picture"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestThePicturesAreThoseOfTheCommand(t *testing.T) {
	dir := filepath.Join("..", "..", "..", filepath.FromSlash(picture.Dir))
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, ok := picture.All()[file.Name()]; !ok {
			t.Errorf("no function draws %s", file.Name())
		}
	}
	for name, want := range picture.All() {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if string(got) != want {
			t.Errorf("%s differs: run go generate ./tests/docs", name)
		}
	}
}

func TestPicturesAreXML(t *testing.T) {
	for name, svg := range picture.All() {
		for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if !strings.Contains(svg, "@media (prefers-color-scheme: dark)") {
			t.Errorf("%s has no colors for dark pages", name)
		}
	}
}
