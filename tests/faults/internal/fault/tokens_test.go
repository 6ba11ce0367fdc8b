package fault

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/store"
)

func TestTokensNameProcesses(t *testing.T) {
	t.Parallel()
	one, other := strings.Repeat("a1", 16), strings.Repeat("b2", 16)
	var seen seenProcesses
	for _, token := range []string{
		other + ":7", one + ":3", "", foreign, one + ":9", one + ":4", one[1:] + ":5", one + ":x", one + ":99999999999999999999",
		"shared 0 - 0", one + ":01312", one + ":0031",
	} {
		seen.add(token)
	}
	want := seenProcesses{{other, 7, []store.Limit{store.Exclusive}}, {one, 31, []store.Limit{store.Exclusive, 3, store.Unlimited}}}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("got %v, want %v", seen, want)
	}
}

func TestForgedNumbers(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		numbers := nextNumbers(random, 5)
		for _, wanted := range []uint64{5, 6, 11} {
			if !slices.Contains(numbers, wanted) {
				t.Fatalf("%v lacks %d", numbers, wanted)
			}
		}
		old := func(n uint64) bool { return n <= 5 }
		if huge := slices.Max(numbers); huge < 1<<40 || !slices.ContainsFunc(numbers, old) {
			t.Fatalf("%v lacks a huge or an old number", numbers)
		}
	}
	if numbers := manyNumbers(random, 0); len(numbers) != 100 {
		t.Errorf("%d numbers", len(numbers))
	}
}
