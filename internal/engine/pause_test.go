package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

func TestPauses(t *testing.T) {
	t.Parallel()
	fault := errors.New("down")
	tests := []struct {
		name         string
		answer       store.Answer
		err          error
		notListening bool
		least, most  []time.Duration // of the first pauses in a row; the last one repeats
	}{
		{
			"a hint will come",
			store.Answer{Remaining: time.Minute},
			nil, false,
			[]time.Duration{time.Second},
			[]time.Duration{1250 * time.Millisecond},
		},
		{
			"the key has no TTL",
			store.Answer{Remaining: -1},
			nil, false,
			[]time.Duration{time.Second},
			[]time.Duration{1250 * time.Millisecond},
		},
		{
			"the key expires before",
			store.Answer{Remaining: 100 * time.Millisecond},
			nil, false,
			[]time.Duration{100 * time.Millisecond},
			[]time.Duration{125 * time.Millisecond},
		},
		{
			"no hint",
			store.Answer{ForeignHolder: true, Remaining: time.Minute},
			nil, false,
			pollPauses[:], pollPauses[:],
		},
		{
			"not listening",
			store.Answer{Remaining: time.Minute},
			nil, true,
			pollPauses[:], pollPauses[:],
		},
		{
			"no hint, and the key expires before",
			store.Answer{ForeignHolder: true, Remaining: 10 * time.Millisecond},
			nil, false,
			[]time.Duration{10 * time.Millisecond},
			[]time.Duration{10 * time.Millisecond},
		},
		{
			"faults",
			store.Answer{},
			fault, false,
			[]time.Duration{minPause / 2, minPause, 2 * minPause},
			[]time.Duration{minPause, 2 * minPause, maxPause},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for range 100 {
				var p pauses
				for i := range 12 {
					n := min(i, len(test.least)-1)
					if d := p.after(test.answer, test.err, test.notListening); d < test.least[n] || d > test.most[n] {
						t.Fatalf("pause %d is %v, want %v to %v", i, d, test.least[n], test.most[n])
					}
				}
			}
		})
	}
}

func TestReplyResetsFaultPauses(t *testing.T) {
	t.Parallel()
	var p pauses
	for range 10 {
		p.after(store.Answer{}, errors.New("down"), false)
	}
	p.after(store.Answer{Remaining: time.Minute}, nil, false)
	if d := p.after(store.Answer{}, errors.New("down"), false); d > minPause {
		t.Errorf("the next fault pauses for %v", d)
	}
}

// Polls that follow a holder that sends hints begin with the shortest pause again.
func TestReplyResetsPollPauses(t *testing.T) {
	t.Parallel()
	var p pauses
	foreign := store.Answer{ForeignHolder: true} // without a TTL
	for range 10 {
		p.after(foreign, nil, false)
	}
	p.after(store.Answer{Remaining: time.Minute}, nil, false)
	if d := p.after(foreign, nil, false); d != pollPauses[0] {
		t.Errorf("the next poll pauses for %v", d)
	}
}
