package redisstore

import (
	"testing"

	"github.com/reqlock/reqlock/internal/store"
)

// Any program may lock a key with any value. A value that only resembles the marker of shared
// leases is the holder.
func TestValueThatIsNoMarkerIsTheHolder(t *testing.T) {
	t.Parallel()
	for holder, isShared := range map[string]bool{
		"shared 77 - 0":        true,
		"shared 77 A1/2 12345": true,

		"shared":             false,
		"shared ":            false,
		"shared lock":        false,
		"shared 77 - later":  false,
		"shared many - 0":    false,
		"shared 77  0":       false,
		"shared  - 0":        false,
		"shared 77 - ":       false,
		"shared 77 - 0 more": false,
		"77 - 0":             false,
		"Shared 77 - 0":      false,
	} {
		got := hideMarker(store.Answer{Holder: holder, ForeignHolder: true})
		hasHolder := got.Holder == holder && got.ForeignHolder
		if got.Shared != isShared || hasHolder == isShared || isShared && got.Holder != "" {
			t.Errorf("%q: %+v", holder, got)
		}
	}
}
