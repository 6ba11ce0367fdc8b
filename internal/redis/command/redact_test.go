package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// Neither an error nor an error that it wraps has the user's name or the arguments.
func TestFaultHasNoUserAndNoArguments(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]string{
		"NOPERM User alice has no permissions to run the 'set' command":             "NOPERM this user has no permissions to run the 'set' command",
		"ERR unknown command 'EVALSHA', with args beginning with: 'digest' 'alice'": "ERR unknown command 'EVALSHA'",
	} {
		fault := NewFault(storetest.ServerError(says), false)
		if fault.Temporary || fault.Unknown || IsTransport(fault) || fault.Error() != want {
			t.Errorf("%+v is another fault than without the name", fault)
		}
		for err := error(fault); err != nil; err = errors.Unwrap(err) {
			if strings.Contains(err.Error(), "alice") {
				t.Errorf("%T tells %q", err, err)
			}
		}
	}
}
