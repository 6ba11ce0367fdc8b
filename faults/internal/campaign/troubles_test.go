package campaign

import "testing"

func TestWhenAllWasWell(t *testing.T) {
	const begun = 1
	t.Run("the fault came to its end", func(t *testing.T) {
		var s troubles
		s.begin("a", false)()
		s.well()
		if got := s.over(begun); got != s.calm || got <= s.all()[0].To {
			t.Errorf("got %d of %+v", got, s.all())
		}
	})
	t.Run("it did not, and broke nothing", func(t *testing.T) {
		var s troubles
		if got := s.over(begun); got != begun {
			t.Errorf("got %d", got)
		}
	})
	t.Run("it did not, but left nothing broken", func(t *testing.T) {
		var s troubles
		s.begin("a", false)()
		s.begin("b", true)()
		if got, want := s.over(begun), s.all()[1].To; got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	})
	t.Run("it left something broken", func(t *testing.T) {
		var s troubles
		s.begin("a", false)
		s.begin("b", false)()
		if got := s.over(begun); got != 0 {
			t.Errorf("got %d", got)
		}
	})
}

func TestATroubleEndsOnce(t *testing.T) {
	var s troubles
	end := s.begin("a", true)
	end()
	first := s.all()[0]
	end()
	if again := s.all()[0]; again.To != first.To || first.Name != "a" || !first.Loss || first.From == 0 || first.To < first.From {
		t.Errorf("got %+v, then %+v", first, again)
	}
}
