package core_test

import (
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Answers of any length open, and are stored in steps of 256 bytes. One that was changed does not open,
// whichever byte it is, nor does one whose fingerprint was changed.
func TestSealedAnswers(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks := newLocker(t, rdb, core.WithSealer(sealerOf(t, "now")))
	const record, head = "{reqlock:i:k}:r", len("\x00sealed") + 2 + len("now") + 28
	for length, want := range map[int]int{0: 256, 255: 256, 256: 512, 1000: 1024} {
		answer := strings.Repeat("\x80", length)
		noError(t, begin(t, locks, "k").Commit(t.Context(), []byte(answer)))
		wantReplay(t, locks, "k", answer)
		stored := storetest.RecordAt(t, rdb, record)["p"]
		if got := len(stored) - head; got != want {
			t.Errorf("%d bytes are stored as %d, want %d", length, got, want)
		}
		for i := len("\x00sealed"); i < len(stored); i += 1 + len(stored)/20 {
			for _, changed := range []string{stored[:i], stored[:i] + string(stored[i]^1) + stored[i+1:]} {
				storetest.ChangeRecord(t, rdb, record, map[string]string{"p": changed})
				wantError(t, errorOf(locks.Begin(t.Context(), "k", []byte("f"))), core.ErrUnreplayable)
			}
		}
		storetest.ChangeRecord(t, rdb, record, map[string]string{"p": stored, "f": "g"})
		wantError(t, errorOf(locks.Begin(t.Context(), "k", []byte("g"))), core.ErrUnreplayable)
		rdb.Del(t.Context(), record)
	}
}
