package failover

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// failoversEnv says how many failovers each succession is played with, as in "50".
const failoversEnv = "REQLOCK_FAILOVERS"

// failovers returns how many it are.
func failovers(t *testing.T) int {
	t.Helper()
	text := cmp.Or(os.Getenv(failoversEnv), "3")
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s: %q is no number of failovers", failoversEnv, text)
	}
	return n
}

// A master is replaced while its locks are at some of its replicas, and those who hold
// them are told nothing. It comes out the same every time, because who has the locks
// is settled and not a race.
func TestLocksThatAreDoubledByAFailover(t *testing.T) {
	for name, s := range successions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &deployment{sentinels: redistest.StartSentinel(t)}
			counts := make([]tally, len(s.fates))
			rounds := failovers(t)
			for round := range rounds {
				t.Run(strconv.Itoa(round), func(t *testing.T) {
					for n, fate := range s.play(t, d) {
						counts[n].add(string(fate))
					}
				})
			}
			table := []string{fmt.Sprintf("%s: %d failovers", name, rounds)}
			for n := range counts {
				table = append(table, fmt.Sprintf("  locks that %d replicas had to acknowledge: %v", n, &counts[n]))
			}
			t.Log(strings.Join(table, "\n"))
		})
	}
}
