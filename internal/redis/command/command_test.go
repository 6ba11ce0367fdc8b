package command

import (
	"maps"
	"testing"
)

func TestInfoFields(t *testing.T) {
	t.Parallel()
	got := InfoFields("# Server\r\nrun_id:ab\r\nexecutable:/usr/bin/a:b\r\n\r\nempty:\r\n")
	want := map[string]string{"run_id": "ab", "executable": "/usr/bin/a:b", "empty": ""}
	if !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
