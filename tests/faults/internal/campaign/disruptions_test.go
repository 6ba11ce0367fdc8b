package campaign

import (
	"slices"
	"testing"
)

func everything(string) bool { return true }

func TestRecoveredAt(t *testing.T) {
	const begun = 1
	t.Run("the fault came to its end", func(t *testing.T) {
		var s disruptions
		s.begin("a", nil)()
		s.recovered()
		if got := s.recoveredAt(begun); got != s.end || got <= s.all(nil)[0].To {
			t.Errorf("got %d of %+v", got, s.all(nil))
		}
	})
	t.Run("it did not, and broke nothing", func(t *testing.T) {
		var s disruptions
		if got := s.recoveredAt(begun); got != begun {
			t.Errorf("got %d", got)
		}
	})
	t.Run("it did not, but left nothing broken", func(t *testing.T) {
		var s disruptions
		s.begin("a", nil)()
		s.begin("b", everything)()
		if got, want := s.recoveredAt(begun), s.all(nil)[1].To; got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	})
	t.Run("it left something broken", func(t *testing.T) {
		var s disruptions
		s.begin("a", nil)
		s.begin("b", nil)()
		if got := s.recoveredAt(begun); got != 0 {
			t.Errorf("got %d", got)
		}
	})
}

func TestDisruptionEndsOnce(t *testing.T) {
	var s disruptions
	end := s.begin("a", everything)
	end()
	first := s.all(nil)[0]
	end()
	if again := s.all(nil)[0]; again.To != first.To || first.Name != "a" || !first.Loss || first.From == 0 || first.To < first.From {
		t.Errorf("got %+v, then %+v", first, again)
	}
}

func TestDisruptionListsLostKeys(t *testing.T) {
	keys := map[string]string{"p:b": "b", "p:a": "a", "p:i:c": "c"}
	for name, c := range map[string]struct {
		lost func(string) bool
		keys []string
		loss bool
	}{
		"nothing":              {nil, nil, false},
		"everything":           {everything, nil, true},
		"some of them":         {func(name string) bool { return name != "p:i:c" }, []string{"a", "b"}, true},
		"what nobody has used": {func(string) bool { return false }, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var s disruptions
			s.begin("a", c.lost)()
			if got := s.all(keys)[0]; got.Loss != c.loss || !slices.Equal(got.Keys, c.keys) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
