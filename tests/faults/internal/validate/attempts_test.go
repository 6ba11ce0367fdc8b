package validate

import "testing"

func TestAttempts(t *testing.T) {
	runCases(t, "", []testCase{
		{"refused after an abort", "begin 1 p 1-2 =a; abort a 10-11; begin 2 p 600-601 interrupted", "attempts errors"},
		{"died, aborted after that, and run again as the first", "kill 1 10; begin 1 p 1-2 =a rerun; begin 2 p 600-601 =b n:2 rerun; abort b 610-620; " +
			"begin 3 p 630-640 =c rerun; commit c 650-651 answer:x", "attempts"},
		{"replayed before there was an answer", "begin 1 p 1-2 =a; begin 2 p 3-9 replayed answer:x; commit a 10-20 answer:x", "attempts"},
		{"another answer", "begin 1 p 1-2 =a; commit a 10-20 answer:x; begin 2 p 23-25 replayed answer:y", "attempts"},
		{"run after the answer", "disrupt 1-100; begin 1 p 1-2 =a rerun; commit a 10-20 answer:x; begin 2 p 11-25 =b n:2 rerun; commit b 30-40 lost answer:y", "attempts"},
		{"two answers", "begin 1 p 1-2 =a rerun; ended a 501; begin 2 p 502-503 =b n:2 rerun; commit a 510-520 answer:x; commit b 530-540 answer:y", "attempts"},
		{"run beside an answer that goes on, after a loss of data", "disrupt 5-50; lose 5-50; begin 1 p 1-2 =a; commit a 10-20 unavailable answer:x; " +
			"begin 1 p 60-61 =b; commit b 70-80 answer:y", "attempts"},
		{"the answer of a dead process, replayed, and then not", "kill 1 12; kill 2 630; begin 1 p 1-2 =a rerun; commit a 10- none answer:x; " +
			"begin 2 p 23-25 replayed answer:x; begin 2 p 600-625 =b n:2 rerun", "attempts"},
		{"an answer that was refused, replayed", "disrupt 1-100; begin 1 p 1-2 =a; commit a 10-20 lost answer:x; begin 2 p 23-25 replayed answer:x", "attempts"},
		{"an answer that goes on because it was refused, replayed in its process", "disrupt 5-500; begin 1 p 1-2 =a; commit a 10-11 deadline answer:x; " +
			"begin 1 p 300-301 replayed answer:x; begin 2 p 600-601 interrupted", ""},
		{"an answer that was not refused in time, replayed in its process, and then not", "disrupt 262-500; begin 1 p 1-2 =a; commit a 10-11 deadline answer:x; " +
			"begin 1 p 300-301 replayed answer:x; begin 2 p 600-601 interrupted", "attempts"},
		{"run before an abort", "begin 1 p 1-2 =a valid:4; begin 2 p 3-9 =b; abort a 10-20; commit b 30-40 answer:y", "attempts"},
		{"interrupted, and run again as the first", "begin 1 p 1-2 =a rerun; release a 10-11; begin 2 p 20-21 =b rerun; commit b 30-31 answer:x", "attempts"},
		{"refused before it can have died", "begin 1 p 1-2 =a; begin 2 p 20-30 interrupted; commit a 40-41 answer:y", "attempts errors"},
		{"refused, although no attempt began", "begin 2 p 600-601 interrupted", "attempts errors"},
		{"refused after the answer", "begin 1 p 1-2 =a; commit a 10-20 answer:x; begin 2 p 600-601 interrupted", "attempts errors"},
		{"refused under the policy to run again", "kill 1 10; begin 1 p 1-2 =a rerun; begin 2 p 600-601 interrupted rerun", "attempts"},
		{"died, and run again under the policy to reject", "kill 1 10; kill 2 610; begin 1 p 1-2 =a; begin 2 p 600-601 =b n:2", "attempts"},
		{"died, and run again before it can have died", "kill 1 10; kill 2 610; begin 1 p 1-2 =a rerun; begin 2 p 400-401 =b n:2 rerun", "attempts"},
		{"died, and run again, not counted", "kill 1 10; kill 2 610; begin 1 p 1-2 =a rerun; begin 2 p 600-601 =b rerun", "attempts"},
		{"died, and run again, counted too far", "kill 1 10; kill 2 610; begin 1 p 1-2 =a rerun; begin 2 p 600-601 =b n:3 rerun", "attempts"},
	})
}

func TestAttemptsAfterDataLoss(t *testing.T) {
	runCases(t, "", []testCase{
		{"run twice after a loss", "disrupt 301-400; lose 100-200; begin 2 p 300-301 =b; commit b 310-320 answer:y; begin 1 p 330-331 =c; " +
			"commit c 340-350 lost answer:z", "attempts errors"},
		{"run again after a loss of another key", "lose 100-200 k; begin 1 p 1-2 =a; commit a 10-20 answer:x; begin 2 p 300-301 =b; " +
			"commit b 310-320 answer:y", "attempts errors"},
		{"run twice before a loss", "disrupt 301-400; lose 500-600; begin 2 p 300-301 =b; commit b 310-320 answer:y; begin 1 p 330-331 =c; " +
			"commit c 340-350 lost answer:z", "attempts errors"},
		{"two answers after a loss", "lose 100-200; begin 1 p 1-2 =a; commit a 10-20 answer:x; begin 2 p 300-301 =b; commit b 310-320 answer:y; " +
			"begin 2 p 340-341 replayed answer:x", "attempts"},
	})
}

func TestEffects(t *testing.T) {
	runCases(t, "", []testCase{
		{"by an attempt that must not run", "begin 1 p 1-2 =a; commit a 10-20 answer:x; charge b 5", "effects"},
		{"forgotten", "kill 1 10; kill 2 610; begin 1 p 1-2 =a rerun; begin 2 p 600-601 =b rerun; charge a 5", "attempts effects"},
		{"forgotten before a loss of data", "lose 1100-1200; kill 1 10; kill 2 610; begin 1 p 1-2 =a rerun; begin 2 p 600-601 =b rerun; charge a 5", "attempts effects"},
	})
}

func TestPayloadsAndSeals(t *testing.T) {
	runCases(t, "", []testCase{
		{"the same is refused", "begin 1 p 1-2 =a; commit a 10-11 answer:x; begin 2 p 20-21 mismatch", "errors"},
		{"another payload gets the answer", "begin 1 p 1-2 =a; commit a 10-11 answer:x; begin 2 p 20-21 replayed answer:x other", "errors"},
		{"it was not sealed", "begin 2 p 20-21 unreplayable", "errors"},
		{"it was committed", "begin 1 p 1-2 =a; commit a 10-11 answer:x; begin 2 p 20-21 unreplayable", "errors"},
		{"another attempt at it was sealed before", "disrupt 1-100; begin 1 p 1-2 =a; seal a 10-11 lost; begin 2 p 3-4 =b; commit b 12-13 answer:x; " +
			"begin 2 p 20-21 unreplayable", "attempts mutual-exclusion"},
		{"a sealed one runs again", "begin 1 p 1-2 =a; seal a 10-11; begin 2 p 20-21 =b rerun; commit b 30-31 answer:y", "attempts"},
	})
}
