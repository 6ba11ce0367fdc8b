package redistest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Only a server that has no options of TLS may skip a test.
func TestStartTLSReportsBadArgs(t *testing.T) {
	t.Parallel()
	Start(t) // skips the test where there is no server
	ended := watch(t, func(tb testing.TB) { StartTLS(tb, "--no-such-option", "1") })
	if !strings.HasPrefix(ended, "fatal: start redis-server with TLS") || !strings.Contains(ended, "no-such-option") {
		t.Errorf("got %q", ended)
	}
}

// withoutTLS is a program that ends as a redis-server that was built without TLS.
const withoutTLS = `#!/bin/sh
echo "*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***"
echo "Reading the configuration file, at line 12"
echo ">>> 'tls-port \"6379\"'"
echo "Bad directive or wrong number of arguments"
exit 1
`

func TestStartTLSOfServerWithoutTLS(t *testing.T) {
	program := filepath.Join(t.TempDir(), "redis-server")
	if err := os.WriteFile(program, []byte(withoutTLS), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(programEnv, program)
	for value, want := range map[string]string{"": "skip: redis-server has no TLS", "1": "fatal: " + suite.RequireEnv + " is set: redis-server has no TLS"} {
		t.Setenv(suite.RequireEnv, value)
		if ended := watch(t, func(tb testing.TB) { StartTLS(tb) }); !strings.HasPrefix(ended, want) {
			t.Errorf("%s=%q: %q, want %q", suite.RequireEnv, value, ended, want)
		}
	}
}
