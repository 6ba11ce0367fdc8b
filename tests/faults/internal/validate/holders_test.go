package validate

import "testing"

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
