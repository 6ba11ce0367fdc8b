package quorum

import (
	"testing"
	"time"
)

func TestOverlapsAreFound(t *testing.T) {
	t.Parallel()
	start := time.Now()
	type span struct {
		key      string
		from, to int
	}
	for name, test := range map[string]struct {
		spans []span
		finds int
	}{
		"one after the other":                  {[]span{{"k", 0, 10}, {"k", 10, 20}, {"k", 30, 40}}, 0},
		"as they ended, and not as they began": {[]span{{"k", 10, 20}, {"k", 0, 10}}, 0},
		"one within another":                   {[]span{{"k", 0, 10}, {"k", 9, 20}}, 1},
		"one within one that is not the last":  {[]span{{"k", 0, 30}, {"k", 5, 10}, {"k", 20, 40}}, 2},
		"two at the same moment":               {[]span{{"k", 0, 10}, {"k", 0, 10}}, 1},
		"of two keys":                          {[]span{{"k", 0, 10}, {"l", 5, 15}}, 0},
		"one that was over before it began":    {[]span{{"k", 0, 10}, {"k", 5, 5}, {"k", 7, 6}}, 0},
	} {
		h := newHistory()
		for _, s := range test.spans {
			h.add(s.key, hold{"somebody", start.Add(time.Duration(s.from)), start.Add(time.Duration(s.to))})
		}
		if found := h.overlaps(); len(found) != test.finds {
			t.Errorf("%s: found %q, want %d", name, found, test.finds)
		}
	}
}
