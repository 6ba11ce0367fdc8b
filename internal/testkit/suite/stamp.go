package suite

import (
	"os"
	"path/filepath"
	"sync"
	"time"
)

// stampName is the name of an ignored file in the folder of a package that was tested.
const stampName = ".stamp"

// stamp is the path of the stamp once the result of the package's tests depends on more
// than go test knows of, and empty before.
var stamp struct {
	mu   sync.Mutex
	path string
}

// NeverCache keeps go test from reporting a cached result of the package's tests later.
// go test watches the files that a test opens inside its module, and no others: it does
// not see that a program outside was installed or replaced. But it caches nothing if a
// watched file has changed in the last two seconds. So this opens a file, and Main
// changes it after the last test. A test that calls it must not have changed its folder.
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

// writeStamp changes the stamp if a test has called NeverCache. Where it cannot be
// written, as in the cache of modules, only this protection is lost.
func writeStamp() {
	stamp.mu.Lock()
	defer stamp.mu.Unlock()
	if stamp.path != "" {
		_ = os.WriteFile(stamp.path, []byte(time.Now().Format(time.RFC3339Nano)+"\n"), 0o600)
	}
}
