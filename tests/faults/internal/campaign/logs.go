package campaign

import (
	"os"
	"path/filepath"
	"testing"
)

// keepServerLogs reads the logs of the servers after they have ended. Call it before the
// servers are started: cleanups run in reverse order.
func (r *Report) keepServerLogs(tb testing.TB) {
	tb.Helper()
	root := filepath.Dir(tb.TempDir()) // the directory of each server is a sibling of this one
	tb.Cleanup(func() {
		r.ServerLogs = make(map[string][]byte)
		paths, err := filepath.Glob(filepath.Join(root, "*", "redis-server.log"))
		if err != nil {
			tb.Error(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path) //nolint:gosec // a server of ours has written it
			if err != nil {
				tb.Error(err)
			}
			r.ServerLogs["server-"+filepath.Base(filepath.Dir(path))+".log"] = text
		}
	})
}
