package quorum

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// soakEnv says for how long all rows are played, again and again, as in "10m": at
// least once. Without it some of them are, once.
const soakEnv = "REQLOCK_SOAK"

// stages is on how many sets of servers rows are played at the same time. They
// mostly wait, but a machine that is busy itself looks like servers that are ill.
const stages = 4

// play plays all rows, or some, each in a test of its own.
func play(t *testing.T, all, some []row, one func(s *stage, t *testing.T, name string, r row)) {
	t.Helper()
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv(soakEnv), "0s"))
	if err != nil {
		t.Fatalf("%s: %v", soakEnv, err)
	}
	rows := some
	if lasts > 0 {
		rows = all
	}
	var sets []*stage
	for range min(stages, len(rows)) {
		sets = append(sets, newStage(t, 3))
	}
	var group sync.WaitGroup
	numbers := make(chan int)
	for _, s := range sets {
		group.Go(func() {
			for i := range numbers {
				r := rows[i%len(rows)]
				t.Run(r.String(), func(t *testing.T) { one(s, t, fmt.Sprintf("row%d", i), r) })
			}
		})
	}
	end := time.Now().Add(lasts)
	for i := 0; i < len(rows) || time.Now().Before(end); i++ {
		numbers <- i
	}
	close(numbers)
	group.Wait()
}
