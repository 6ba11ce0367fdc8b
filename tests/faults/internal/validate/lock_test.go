package validate

import (
	"fmt"
	"testing"
)

func TestGrantsThatNoServerCanGive(t *testing.T) {
	runCases(t, "", []testCase{
		{"granted while another holds it", "lock 1 k 1-3 =a #10; lock 2 k 5-10 =b #11; release a 20-22; release b 30-31", "linearizability mutual-exclusion"},
		{"granted before a release was called whose reply is lost", "disrupt 15-60; lock 1 k 1-3 =a #10; lock 2 k 5-19 =b #11; " +
			"release a 20-50 unavailable relied:10; release b 30-31", "linearizability"},
		{"granted before the lease of a dead process expired", "kill 1 50; lock 1 k 1-3 =a #10; lock 2 k 60-499 =b #11; release b 510-511", "linearizability"},
		{"granted before an extended lease expired", "kill 1 450; lock 1 k 1-3 =a #10; extend a 400-401 valid:900; lock 2 k 60-700 =b #11; release b 710-711", "linearizability"},
		{"extended after it was released", "kill 1 405; lock 1 k 1-3 =a #10; lock 2 k 410-420 =b #11; extend a 430-440; release b 450-451", "linearizability"},
		{"released although another client held it", "lock 1 k 1-3 =a #10; lock 2 k 5-300 =b #11; release a 310-320 relied:250; release b 330-340", "linearizability"},
		{"handed off within a process, and granted to another process", "lock 1 k 1-3 =a #10; release a 20-21; lock 1 k 2-22 =b of:a #11; " +
			"lock 2 k 2-25 =c #12; release b 30-31; release c 40-41", "linearizability mutual-exclusion"},
		{"granted with the fence of another, at the same time", "lock 1 k 1-3 =a #10; release a 20-22; lock 2 k 2-23 =b #10; release b 30-31", "linearizability"},
		{"granted before a loss, twice", "lose 100-200; lock 1 k 1-3 =a #10; lock 2 k 21-30 =c #20; release c 31-32; release a 90-91", "linearizability mutual-exclusion"},
		{"granted after a loss, twice", "lose 100-200; lock 1 k 201-203 =a #10; lock 2 k 221-230 =c #20; release c 231-232; release a 290-291", "linearizability mutual-exclusion"},
		{"a fence after a loss that is not above that of a stale lease", "lose 100-200; lock 1 k 1-3 =a #10; lock 2 k 201-210 =c #9; release c 231-232; " +
			"release a 290-291", "fences linearizability"},
	})
}

func TestRefusalsThatNoServerCanGive(t *testing.T) {
	runCases(t, "", []testCase{
		{"while the clients connect", "run begun:50; lock 1 k 1-3 =a; release a 4-5; try 2 k 20-22 busy", ""},
		{"after a stale lease that ended long ago", "lose 100-200; lock 1 k 101-103 =a #10; release a 300-301; try 2 k 4000-4001 busy", "linearizability"},
		{"a free key that was never held", "try 2 k 4000-4001 busy", "linearizability"},
		{"a key that was freed long ago", "lock 1 k 1-3 =a #10; release a 30-31; try 2 k 4000-4001 busy", "linearizability"},
		{"a key whose waiter gave up long ago", "lock 3 k 5-30 wait_timeout wait:25; try 2 k 281-282 busy", "linearizability"},
		{"a key that others had before and after", "lock 1 k 1-3 =a #10; release a 30-31; try 2 k 50-51 busy; lock 1 k 60-61 =b #11; release b 70-71", "linearizability"},
		{"a key for which another process waits", "lock 3 k 40-70 =b #12; try 2 k 50-51 busy; lock 1 k 52-53 =a #11; release a 60-61; release b 80-81", "linearizability"},
		{"a key that was freed just now, and that has no waiters", "lock 1 k 1-3 =a #10; release a 30-31; try 2 k 131-132 busy", "linearizability"},
		{"a free key, since a reply was lost", "disrupt 3000-4050 a reply is lost; try 2 k 4100-4101 busy", "linearizability"},
		{"a key whose last caller died long ago", "kill 1 40; lock 1 k 1-; try 2 k 4100-4101 busy", "linearizability"},
		{"refused a free key", "run on:quorum timeout:100; lock 2 k 1000-1001 =a; release a 1002-1003; try 1 k 10000-10001 busy", "linearizability"},
		{"refused beside another call, by one server", "run timeout:100; lock 2 k 1000-1001 =a; release a 1002-1003; try 2 k 9999-10005 busy; " +
			"try 1 k 10000-10001 busy", "linearizability"},
	})
}

func TestSharedGrantsThatNoServerCanGive(t *testing.T) {
	runCases(t, "", []testCase{
		{"one more than the limit", "lock 1 k 1-3 =a limit:2; lock 2 k 2-4 =b limit:2; lock 3 k 5-10 =c limit:2; release a 20-22; release b 30-31; " +
			"release c 30-31", "limit linearizability"},
		{"one more, granted before any holder relies on its lease", "lock 1 k 1-3 =a limit:2; lock 2 k 2-4 =b limit:2; lock 3 k 5-10 =c limit:2; " +
			"release a 20-22 relied:4; release b 30-31; release c 30-31", "linearizability"},
		{"one more before the first holder, which died, expired", "kill 1 50; lock 1 k 1-3 =a limit:2; lock 2 k 2-4 =b valid:900 limit:2; " +
			"lock 3 k 60-499 =c limit:2; release b 510-511; release c 530-531 valid:900", "linearizability"},
		{"two leases for one that expired", "kill 1 50; lock 1 k 1-3 =a limit:2; lock 2 k 2-4 =b valid:2000 limit:2; lock 3 k 60-502 =c limit:2; " +
			"lock 4 k 60-503 =d limit:2; release b 610-611; release c 630-631 valid:2000 relied:560; release d 630-631 valid:2000 relied:560", "limit linearizability"},
		{"handed off within a process before the release was called", "lock 1 k 1-3 =a limit:2; lock 2 k 2-4 =b limit:2; lock 1 k 5-19 =c of:a limit:2; " +
			"release a 20-22; release b 30-31; release c 30-31", "limit linearizability"},
		{"granted between two leases of an episode", "lock 1 k 1-3 =a limit:1; release a 20-21; lock 2 k 22-23 =b limit:1; release b 24-25; " +
			"lock 1 k 26-27 =c of:a limit:1; release c 30-31", "linearizability"},
		{"two limits at once, above the lower one", "lock 1 k 1-3 =a limit:3; lock 2 k 2-4 =b limit:3; lock 3 k 5-6 =c limit:2; release a 20-22; " +
			"release b 30-31; release c 30-31", "linearizability"},
		{"refused below the limit", "lock 1 k 1-3 =a limit:2; try 3 k 5-6 busy limit:2; release a 20-22", "linearizability"},
		{"a limit that is none", "try 3 k 5-6 busy limit:-2", "malformed"},
		{"a writer beside a reader", "lock 1 k 1-3 =a shared; lock 3 k 3-10 =w; release a 20-22; release w 40-41", "linearizability mutual-exclusion"},
		{"a reader beside a writer", "lock 3 k 1-3 =w; lock 1 k 5-10 =a shared; release a 20-22; release w 40-41", "linearizability mutual-exclusion"},
		{"a writer after one of two readers", "lock 1 k 1-3 =a shared; lock 2 k 2-4 =b shared; lock 3 k 3-25 =w; release a 20-22; release b 30-31; " +
			"release w 40-41", "linearizability mutual-exclusion"},
		{"a writer before the last reader, which died, expired", "kill 2 10; lock 1 k 1-3 =a shared; lock 2 k 2-4 =b shared; lock 3 k 300-501 =w; " +
			"release a 20-22; release w 510-511", "linearizability"},
		{"a permit beside a reader", "lock 1 k 1-3 =a shared; lock 2 k 4-5 =b limit:1; release a 20-22; release b 30-31", "linearizability"},
		{"a reader refused beside a reader", "lock 1 k 1-3 =a shared; try 2 k 5-6 busy shared; release a 20-22", "linearizability"},
		{"a reader refused long after calls were served together", "lock 1 k 1-3 =a limit:2; lock 1 k 2-20 =b of:a limit:2; release a 19-20; " +
			"try 2 k 290-291 busy shared; release b 300-301", "linearizability"},
		{"a reader refused behind a waiter that died long ago", "kill 3 100; lock 1 k 1-3 =a valid:9000 shared; lock 3 k 4-; try 2 k 2201-2202 busy shared; " +
			"release a 3000-3001", "linearizability"},
	})
}

func TestSharedLeaseIsGrantedBeforeItsConfirmation(t *testing.T) {
	runCases(t, "", []testCase{
		{"confirmed after others were granted, although there was no room since the call", "lock 1 k 1-3 =a limit:2; lock 2 k 2-4 =b limit:2; " +
			"release a 10-12; lock 4 k 13-15 =d limit:3; lock 3 k 16-30 =c valid:528 limit:2; release b 40-41; release c 40-41; release d 40-41", "linearizability"},
		{"valid since before its call, although the earlier caller of its process gave up long before", "lock 1 k 1-3 =a limit:2; " +
			"lock 3 k 5-11 wait_timeout limit:2 wait:6; lock 4 k 12-14 =c limit:3; lock 3 k 290-292 =d valid:510 limit:2; release a 340-341; " +
			"release c 340-341; release d 340-341", "linearizability"},
		{"valid since before its call, although the earlier caller of its process had another limit", "lock 1 k 1-3 =a limit:2; lock 3 k 5-11 =b limit:3; " +
			"release b 12-13; lock 4 k 14-15 =c limit:3; lock 3 k 16-17 =d valid:510 limit:2; release a 40-41; release c 40-41; release d 40-41", "linearizability"},
		{"confirmed long after others were granted", "lock 1 k 1-3 =a limit:2; lock 2 k 2-4 =b limit:2; lock 3 k 5-430 =c valid:928 limit:2; " +
			"release a 20-22; lock 4 k 23-25 =d limit:3; release b 440-441; release c 440-441; release d 440-441", "linearizability"},
		{"valid since before its call, although no earlier call of its process waited", "lock 1 k 1-3 =a limit:2; lock 4 k 12-14 =c limit:3; " +
			"lock 3 k 15-17 =d valid:510 limit:2; release a 40-41; release c 40-41; release d 40-41", "linearizability"},
	})
}

// Without an early end of wrong orders, the search would try each order of the readers.
func TestManyReadersFollowAWriter(t *testing.T) {
	text := "kill 1 500; lock 1 k 1-3 =w #10; extend w 480-490"
	for client := range 24 {
		text += fmt.Sprintf("; lock %d k 470-505 =r%[1]d #11 shared; release r%[1]d 510-511", client+2)
	}
	runCases(t, text, []testCase{{"which was renewed before", "", ""}})
}

func TestHoldersOverlap(t *testing.T) {
	runCases(t, "", []testCase{
		{"not notified, and relied on to the end", "lock 1 k 1-3 =a #10; lock 2 k 11-502 =b #11; release b 610-611", "mutual-exclusion"},
		{"notified when another client held it", "lock 1 k 1-3 =a #10; ended a 505 valid:0; lock 2 k 11-502 =b #11; release b 610-611", "mutual-exclusion"},
		{"killed when another client held it", "kill 1 505; lock 1 k 1-3 =a #10; lock 2 k 11-502 =b #11; release b 610-611", "mutual-exclusion"},
		{"paused after another client had it", "pause 1 600-700; lock 1 k 1-3 =a #10; ended a 705 valid:0; lock 2 k 11-502 =b #11; " +
			"release b 710-711 valid:1000 relied:511", "mutual-exclusion"},
		{"two attempts at once", "disrupt 1-100; begin 1 p 1-3 =a rerun; begin 2 p 11-502 =b n:2 rerun; commit a 520-521 lost valid:600 answer:x; " +
			"commit b 530-531 answer:x", "attempts mutual-exclusion"},
		{"the release was called early, and the lease relied on until later", "disrupt 1-100; lock 1 k 1-3 =a #10; release a 10-50 unavailable relied:30; " +
			"lock 2 k 11-12 =b #11; release b 60-61", "mutual-exclusion"},
	})
}

func TestLeaseEndsLate(t *testing.T) {
	runCases(t, "", []testCase{
		{"not, and released late", "disrupt 1-100; lock 1 k 1-3 =a #10; release a 752-800 lost", "lease-end"},
		{"late, when another process was paused", "pause 2 400-1999; lock 1 k 1-3 =a #10; ended a 2000", "lease-end"},
		{"late, after the machine was paused", "disrupt 300-400 stalled; lock 1 k 1-3 =a #10; ended a 2000", "lease-end"},
		{"late", "lock 1 k 1-3 =a #10; ended a 752", "lease-end"},
		{"late, on an overloaded machine", "disrupt 2000-9000 stalled; lock 1 k 1-3 =a #10; ended a 752", ""},
	})
}

func TestStaleHolders(t *testing.T) {
	runCases(t, "", []testCase{
		{"its holder goes on", "lose 100-110; lock 1 k 1-3 =a #10; lock 2 k 120-130 =b #20; release b 140-141; release a 797-798 valid:1297", "stale-holder"},
		{"two permits beside a stale one, for long", "lose 100-200; lock 1 k 1-3 =a valid:5000 limit:2; lock 2 k 300-301 =b valid:5000 limit:2; " +
			"lock 3 k 302-303 =c valid:5000 limit:2; release a 2000-2001; release b 2000-2001; release c 2000-2001", "stale-holder"},
		{"a reader beside a stale writer, for long", "lose 100-200; lock 1 k 1-3 =a valid:5000; lock 2 k 300-301 =b valid:5000 shared; release a 2000-2001; " +
			"release b 2000-2001", "stale-holder"},
	})
}

func TestMinimalHoldIsKept(t *testing.T) {
	runCases(t, "", []testCase{
		{"granted before", "lock 1 k 1000-1002 =a #10 hold:300; release a 1010-1012; lock 2 k 1005-1249 =b valid:1749 #11; release b 1250-1251", "linearizability min-hold"},
		{"granted before to its own process", "lock 1 k 1000-1002 =a #10 hold:300; release a 1010-1012; lock 1 k 1005-1020 =b #11; release b 1021-1022", "linearizability min-hold"},
		{"the holder had waited: its hold begins with the grant", "lock 1 k 1-1002 =a valid:1500 #10 hold:300; release a 1010-1012; " +
			"lock 2 k 1005-1249 =b valid:1749 #11; release b 1250-1251", "linearizability min-hold"},
		{"released after that, and refused", "lock 1 k 1000-1002 =a #10 hold:300; release a 1302-1304; try 2 k 2502-2504 busy", "linearizability"},
	})
}

func TestFences(t *testing.T) {
	runCases(t, "", []testCase{
		{"vanish", "begin 1 p 1-2 =a #10; abort a 3-4; begin 1 p 5-6 =b; abort b 7-8", "fences"},
		{"fall", "begin 1 p 1-2 =a #10; abort a 3-4; begin 1 p 5-6 =b #9; abort b 7-8", "fences"},
		{"stay", "begin 1 p 1-2 =a #10; abort a 3-4; begin 1 p 5-6 =b #10; abort b 7-8", "fences"},
		{"none of a lock that has them", "lock 1 k 1-2 =a #10; release a 3-4; lock 1 k 5-6 =b; release b 7-8", "fences"},
		{"none of any lock", "run fenced; lock 1 k 1-2 =a; release a 3-4", "fences"},
		{"fall below a number of long ago", "begin 1 p 1-2 =a #10; abort a 3-4; begin 1 p 5-6 =b #13; abort b 7-8; begin 1 p 9-10 =c #12; abort c 11-12", "fences"},
		{"of a stale lease that used its block twice", "lose 100-200; begin 1 p 1-2 =a #10; abort a 30-40; begin 1 p 300-310 =b #50; abort b 320-330; " +
			"begin 1 p 340-350 =c of:a #10; abort c 351-352", "fences"},
		{"after a loss below those of a stale lease", "lose 100-200; begin 1 p 1-2 =a #10; abort a 30-40; begin 1 p 300-310 =c of:a #11; abort c 311-312; " +
			"begin 1 p 340-350 =b #11; abort b 370-380", "fences"},
	})
}

func TestFencesOfPhases(t *testing.T) {
	runCases(t, "", []testCase{
		{"the writer has the number of the readers", "lock 1 k 1-3 =a #10 shared; release a 20-22; lock 3 k 23-32 =w #10; release w 40-41", "fences linearizability"},
		{"a reader has the number of the writer", "lock 3 k 1-3 =w #10; release w 20-22; lock 1 k 23-25 =a #10 shared; release a 30-31", "fences linearizability"},
		{"a later reader has a lower number", "lock 1 k 1-3 =a #10 shared; lock 2 k 4-5 =b #9 shared; release a 20-22; release b 30-31", "fences linearizability"},
		{"readers that overlap have two numbers", "lock 1 k 1-3 =a #10 shared; lock 2 k 4-5 =b #11 shared; release a 20-22; release b 30-31", "linearizability"},
		{"a reader joins a phase that a lagging replica does not have", "lose 100-200; lock 1 k 120-121 =b #11 shared; release b 130-131; " +
			"lock 2 k 210-250 =c #10 shared; release c 260-261", "fences"},
		{"a reader joins a phase after a later one that was not lost", "lose 100-200; lock 1 k 80-85 =a #10 shared; release a 110-111; " +
			"lock 1 k 120-121 =b #12 shared; release b 130-131; lock 1 k 230-240 =d #11 shared; release d 241-242; lock 2 k 250-255 =c #10 shared; " +
			"release c 260-261", "fences linearizability"},
		{"a writer has the number of a phase that a lagging replica still has", "lose 100-200; lock 1 k 80-85 =a #10 shared; release a 110-111; " +
			"lock 1 k 120-121 =b #11 shared; release b 130-131; lock 2 k 210-250 =w #10; release w 260-261", "fences linearizability"},
		{"a reader without a number", "lock 1 k 1-3 =a #10 shared; lock 2 k 4-5 =b shared; release a 20-22; release b 30-31", "fences"},
	})
}

func TestFencesAtFullSpeed(t *testing.T) {
	runCases(t, "", []testCase{
		{"fall", "fast 1 k 1-2 #10; fast 2 k 3-4 #9", "fences"},
		{"stay", "fast 1 k 1-2 #10; fast 1 k 3-4 #10", "fences"},
		{"fall below a number of long ago", "fast 1 k 1-2 #10; fast 1 k 3-4 #13; fast 1 k 5-6 #12", "fences"},
		{"fall in reports that come out of order", "fast 2 k 3-4 #9; fast 1 k 1-2 #10", "fences"},
		{"of a lock that has none", "fast 1 k 1-2 #0", "fences"},
		{"of a counter that is ahead of the clock", "ahead", "fences"},
	})
}

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
