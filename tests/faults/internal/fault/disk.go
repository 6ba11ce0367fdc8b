package fault

import (
	"os"
	"path/filepath"
	"strings"
)

// failSaves makes the server unable to save its data, so that it refuses writes.
func failSaves(s *System) func() {
	dir := s.Admin.ConfigGet(s.Context(), "dir").Val()["dir"]
	if dir == "" {
		s.Fatal("the server does not report the directory of its files")
	}
	heal := configure("save", "3600 1")(s) // the server refuses writes only if it is configured to save
	file := filepath.Join(dir, "dump.rdb")
	if err := os.MkdirAll(file, 0o700); err != nil { // the server cannot replace a directory with a file
		s.Fatalf("spoil %s: %v", file, err)
	}
	s.awaitSave("err")
	return func() {
		if err := os.Remove(file); err != nil {
			s.Fatalf("mend %s: %v", file, err)
		}
		s.awaitSave("ok")
		heal()
		if err := os.Remove(file); err != nil {
			s.Fatalf("delete %s: %v", file, err)
		}
	}
}

// awaitSave saves the data of the server, and waits for the result.
func (s *System) awaitSave(status string) {
	s.Helper()
	s.await("a save that ends "+status, func() bool {
		info := s.Admin.Info(s.Context(), "persistence").Val()
		if strings.Contains(info, "rdb_last_bgsave_status:"+status+"\r\n") && strings.Contains(info, "rdb_bgsave_in_progress:0\r\n") {
			return true
		}
		s.Admin.BgSave(s.Context()) // an error means that a save has already started
		return false
	})
}
