package engine

import (
	"reflect"
	"testing"
)

// A larger variable that a closure captures is allocated on its own: each release and each
// renewal would cost one allocation more.
func TestEventIsCapturedByValue(t *testing.T) {
	t.Parallel()
	if size := reflect.TypeFor[Event]().Size(); size > 128 {
		t.Errorf("an Event has %d bytes", size)
	}
}
