package campaign

import (
	"os"
	"path/filepath"
	"testing"
)

// keepServerLogs reads what the servers of the run have logged, once they have
// ended. It comes before they are started: cleanups run in reverse order.
func (r *Report) keepServerLogs(tb testing.TB) {
	tb.Helper()
	root := filepath.Dir(tb.TempDir()) // each server has a directory beside this one
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
