package redistest

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// Restart kills the server if it runs, starts it again on the same port with
// empty memory, and returns when it answers.
//
// A node of a [Cluster] remains the node that it was, with its slots or its
// master. A server of [Sentinels] comes back as a master, whatever it was, and
// is made a replica when the sentinels see it. See their Await.
func (s *Server) Restart() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	// A replica has its last copy of the master in a file; the directory is there
	// with "--appendonly yes".
	for _, name := range []string{"dump.rdb", "appendonlydir"} {
		if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
			s.tb.Fatalf("restart redis-server: %v", err)
		}
	}
	s.relaunch()
}

// RestartFromDisk kills the server if it runs, starts it again on the same port
// with what it had written to its disk, and returns when it answers. With
// "--appendonly yes" that is all that it had confirmed, for it writes before it
// answers; it would be less only if the machine ended, too.
func (s *Server) RestartFromDisk() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	s.relaunch()
}

// RestartWithData is a Restart that loses nothing: the server, which must run,
// saves its data and ends by itself, and starts with that data.
func (s *Server) RestartWithData() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || s.paused {
		s.tb.Fatalf("restart redis-server with data: it is not running")
	}
	// The answer is that the connection ends. It is the process that counts.
	err := s.admin().ShutdownSave(s.tb.Context()).Err()
	select {
	case <-s.proc.done:
	case <-time.After(readyTimeout):
		s.tb.Fatalf("restart redis-server with data: it does not end: %v\n%s", err, s.log())
	}
	s.relaunch()
}

// relaunch starts the next run. The caller holds s.mu.
func (s *Server) relaunch() {
	s.tb.Helper()
	err := s.launch()
	for attempt := 1; attempt < startAttempts && errors.Is(err, errExited); attempt++ {
		err = s.launch()
	}
	if err != nil {
		s.tb.Fatalf("restart redis-server: %v\n%s", err, s.log())
	}
}
