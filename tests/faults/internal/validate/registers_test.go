package validate

import "testing"

func TestLostUpdates(t *testing.T) {
	runCases(t, "", []testCase{
		{"fenced, lost", "write k v0 fenced; write k v1 fenced; write k v1 fenced; write k v3 fenced", "fenced-updates"},
		{"fenced, on a version that was not written", "write k v7 fenced", "fenced-updates"},
		{"fenced, lost after a loss of data", "lose 1-2; write k v0 fenced; write k v1 fenced; write k v1 fenced; write k v3 fenced", "fenced-updates"},
		{"fenced, lost by careless clients", "run careless; write k v0 fenced; write k v1 fenced; write k v1 fenced; write k v3 fenced", "fenced-updates"},
		{"unfenced, lost", "write k v0; write k v1; write k v1; write k v3", "unfenced-updates"},
		{"unfenced, lost during a disruption", "disrupt 1-2; write k v0; write k v1; write k v1; write k v3", "unfenced-updates"},
		{"unfenced, lost after a loss of data, without a stale lease", "lose 1-2; write k v0; write k v1; write k v1; write k v3", "unfenced-updates"},
	})
}

func TestWritesAfterTheLease(t *testing.T) {
	runCases(t, "disrupt 1-3000; lock 1 k 1000-1001 =a #1; lock 2 k 1600-1601 =b #2; release b 1604-1605; release a 2002-2003 lost; ended a 1500; write k v0 by:2 at:1603 #2 checked:1602", []testCase{
		{"it was paused, and did not check", "pause 1 1410-1990; write k v0 by:1 at:2000 #1", "unfenced-updates"},
		{"it was paused before it checked", "pause 1 1100-1390; write k v0 by:1 at:2000 #1 checked:1400", "unfenced-updates"},
		{"another was paused", "pause 2 1410-1420; write k v0 by:1 at:2000 #1 checked:1400", "unfenced-updates"},
		{"the machine stalled before", "disrupt 1300-1310 stalled; write k v0 by:1 at:2000 #1 checked:1400", "unfenced-updates"},
		{"a stale lease of another key", "lose 1100-1110 l; write k v0 by:1 at:2000 #1 checked:1400", "unfenced-updates"},
		{"a loss before the lease", "lose 900-910; write k v0 by:1 at:2000 #1 checked:1400", "unfenced-updates"},
		{"a loss after the write", "lose 2100-2110; write k v0 by:1 at:2000 #1 checked:1400", "unfenced-updates"},
		{"late", "write k v0 by:1 at:2000 #1 checked:1400", "unfenced-updates"},
	})
}

func TestSharedReads(t *testing.T) {
	runCases(t, "", []testCase{
		{"two versions", "lock 1 k 1-3 =a shared; release a 30-31; read k v7 by:1 at:4; read k v8 by:1 at:20 checked:19", "shared-reads"},
	})
}
