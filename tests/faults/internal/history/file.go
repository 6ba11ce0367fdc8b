package history

import "github.com/reqlock/reqlock/tests/internal/history"

// Save writes the history to a file as JSON.
func (h *History) Save(path string) error { return history.Save(path, h) }

// Load reads a history that Save has written. A field that History does not have is an error.
func Load(path string) (*History, error) {
	h := &History{}
	return h, history.Load(path, h)
}
