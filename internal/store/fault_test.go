package store

import (
	"errors"
	"fmt"
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

func TestFaultOfReturnsTheFaultInAnError(t *testing.T) {
	cause := errors.New("connection refused")
	fault := &Fault{Temporary: true, Err: cause}
	if got := FaultOf(fmt.Errorf("take: %w", fault)); got != fault {
		t.Errorf("of an error with a fault: %+v", got)
	}
	if got := FaultOf(cause); !got.Unknown || got.Temporary || !errors.Is(got, cause) {
		t.Errorf("of an error without one: %+v", got)
	}
}
