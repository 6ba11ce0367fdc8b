package store

import (
	"errors"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestAFaultIsItsCause(t *testing.T) {
	cause := errors.New("connection refused")
	var err error = &Fault{Temporary: true, Err: cause}
	var fault *Fault
	if !errors.Is(err, cause) || err.Error() != cause.Error() || !errors.As(err, &fault) || !fault.Temporary {
		t.Errorf("got %v", err)
	}
}
