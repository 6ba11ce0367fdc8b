package history

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Save writes a history to a file as JSON. The history is a History, or a struct that contains one.
func Save(path string, h any) error {
	data, err := json.MarshalIndent(h, "", " ")
	if err != nil {
		return fmt.Errorf("history %s: %w", path, err)
	}
	return os.WriteFile(path, append(data, '\n'), 0o600)
}

// Load reads what Save has written. An unknown field is an error.
func Load(path string, h any) error {
	data, err := os.ReadFile(path) //nolint:gosec // the path is the user's own
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(h); err != nil {
		return fmt.Errorf("%s is no history: %w", path, err)
	}
	return nil
}

// mostReported is how many violations of one check a test reports.
const mostReported = 5

// Report fails the test with the violations, by the names of their checks. With the flag -artifacts of
// go test it keeps the history of a test that fails.
func Report(t *testing.T, h History, violations map[string][]string) {
	t.Helper()
	for check, found := range violations {
		for i, violation := range found {
			if i == mostReported {
				t.Errorf("%s: and %d more", check, len(found)-i)
				break
			}
			t.Errorf("%s: %s", check, violation)
		}
	}
	if kept := flag.Lookup("test.artifacts"); t.Failed() && kept != nil && kept.Value.String() == "true" {
		path := filepath.Join(t.ArtifactDir(), "history.json")
		if err := Save(path, h); err != nil {
			t.Error(err)
		}
		t.Logf("the history is %s", path)
	}
}
