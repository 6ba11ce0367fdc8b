package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// Save writes the history to a file as JSON, one field on each line. It replaces the file.
func (h *History) Save(path string) error {
	data, err := json.MarshalIndent(h, "", " ")
	if err != nil {
		return fmt.Errorf("history %s: %w", h.Name, err)
	}
	return os.WriteFile(path, append(data, '\n'), 0o600)
}

// Load reads a history that Save has written. An unknown field is an error.
func Load(path string) (*History, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the path is the user's own
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	h := &History{}
	if err := decoder.Decode(h); err != nil {
		return nil, fmt.Errorf("%s is no history: %w", path, err)
	}
	return h, nil
}
