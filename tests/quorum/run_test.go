package quorum

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// soakEnv is how long all rows run, again and again, such as "10m".
const soakEnv = "REQLOCK_SOAK"

// deployments is how many deployments run rows at the same time. The rows mostly wait,
// but on an overloaded machine nodes seem to fail.
const deployments = 4

// runRows runs one subtest for each of some rows, or for each of all rows if soakEnv is
// set. The fast tier runs only few of the rows, chosen at random among those without a
// restart, and skips the others.
func runRows(t *testing.T, all, some []row, few int, test func(d *deployment, t *testing.T, name string, r row)) {
	t.Helper()
	duration, err := time.ParseDuration(cmp.Or(os.Getenv(soakEnv), "0s"))
	if err != nil {
		t.Fatalf("%s: %v", soakEnv, err)
	}
	rows := some
	switch {
	case duration > 0:
		rows = all
	case !suite.IsFull():
		rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		// A node that restarts takes part again only after its quarantine, which takes long.
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.restartCount(), b.restartCount()) })
		for _, r := range rows[few:] {
			t.Run(r.String(), func(t *testing.T) { suite.Full(t, "is one of all combinations of faults") })
		}
		rows = rows[:few]
	}
	var group sync.WaitGroup
	numbers := make(chan int)
	for range min(deployments, len(rows)) {
		d := newDeployment(t, 3)
		group.Go(func() {
			for i := range numbers {
				r := rows[i%len(rows)]
				t.Run(r.String(), func(t *testing.T) { test(d, t, fmt.Sprintf("row%d", i), r) })
			}
		})
	}
	end := time.Now().Add(duration)
	for i := 0; i < len(rows) || time.Now().Before(end); i++ {
		numbers <- i
	}
	close(numbers)
	group.Wait()
}
