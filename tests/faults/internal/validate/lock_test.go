package validate

import "testing"

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
