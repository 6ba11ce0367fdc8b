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
// A node of a [Cluster] keeps its slots or its master. A server of [Sentinels] restarts as
// a master in any case, and the sentinels make it a replica: see Await.
func (s *Server) Restart() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	// A replica has a file with its last copy of the master. The folder exists with
	// "--appendonly yes".
	for _, name := range []string{"dump.rdb", "appendonlydir"} {
		if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
			s.tb.Fatalf("restart redis-server: %v", err)
		}
	}
	s.relaunch()
}

// RestartFromDisk kills the server if it runs, starts it again on the same port
// with the data on its disk, and returns when it answers. With "--appendonly yes" these are
// all confirmed writes, because the server writes before it replies. Only a crash of the
// machine could lose some.
func (s *Server) RestartFromDisk() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	s.relaunch()
}

// RestartWithData is a Restart without loss: the server, which must run, saves its data,
// exits, and starts with that data.
func (s *Server) RestartWithData() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || s.paused {
		s.tb.Fatalf("restart redis-server with data: it is not running")
	}
	// NOW: replicas acknowledge once a second, and they need not have all data. The command
	// ends with an error, because the server closes the connection. Only the end of the
	// process counts.
	err := s.admin().Do(s.tb.Context(), "SHUTDOWN", "SAVE", "NOW").Err()
	select {
	case <-s.proc.Done():
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
