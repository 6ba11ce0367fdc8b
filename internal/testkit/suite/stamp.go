package suite

import (
	"os"
	"path/filepath"
	"sync"
	"time"
)

// stampName is the name of an ignored file in the folder of a package that was tested.
const stampName = ".stamp"

// stamp has the path of the stamp once a test has called NeverCache.
var stamp struct {
	mu   sync.Mutex
	path string
}

// NeverCache prevents later cached results of the tests of the package. go test tracks only
// files that a test opens inside its module: it does not detect that a program outside was
// installed or replaced. But it caches no result if a tracked file has changed in the last
// two seconds. So NeverCache opens a file, and Main changes the file after the last test.
// The caller must not have changed the working directory before.
func NeverCache() {
	stamp.mu.Lock()
	defer stamp.mu.Unlock()
	dir, err := os.Getwd() // go test runs the tests of a package in its folder
	if stamp.path != "" || err != nil {
		return
	}
	stamp.path = filepath.Join(dir, stampName)
	if file, err := os.Open(stamp.path); err == nil {
		_ = file.Close()
	}
}

// writeStamp changes the stamp if a test has called NeverCache. If the folder is read-only, as
// in the cache of modules, go test may report cached results.
func writeStamp() {
	stamp.mu.Lock()
	defer stamp.mu.Unlock()
	if stamp.path != "" {
		_ = os.WriteFile(stamp.path, []byte(time.Now().Format(time.RFC3339Nano)+"\n"), 0o600)
	}
}
