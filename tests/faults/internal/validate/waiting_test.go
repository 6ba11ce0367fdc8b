package validate

import "testing"

func TestOvertakenCalls(t *testing.T) {
	runCases(t, "run valid:9000", []testCase{
		{"a waiter of a process that was served before", "lock 2 k 1-2 =own; release own 3-4; lock 1 k 5-6 =held; release held 2000-2001; " +
			"lock 2 k 10-2302 =w; release w 2303-2304; lock 3 k 600-2005 =x; release x 2006-2007; lock 4 k 60000-60001 =last shared; release last 60002-60003", "order"},
		{"later readers beside a reader, while a writer waits", "lock 1 k 1-3 =held shared; release held 2000-2001; lock 2 k 10-2002 =w; " +
			"release w 2003-2004; lock 3 k 800-801 =r shared; release r 802-803; lock 4 k 1100-1101 =s shared; release s 1102-1103", "order"},
		{"a later writer before a writer", "lock 1 k 1-3 =held shared; release held 2000-2001; lock 2 k 10-2302 =w; release w 2303-2304; " +
			"lock 3 k 600-2005 =x; release x 2006-2007", "order"},
		{"a later writer before a reader", "lock 1 k 1-3 =held; release held 2000-2001; lock 2 k 10-2302 =r shared; release r 2303-2304; " +
			"lock 3 k 600-2005 =x; release x 2006-2007", "order"},
		{"a later permit before a permit", "lock 1 k 1-3 =held limit:1; release held 2000-2001; lock 2 k 10-2302 =r limit:1; release r 2303-2304; " +
			"lock 3 k 600-2005 =x limit:1; release x 2006-2007", "order"},
		{"a Try that passes a writer", "lock 1 k 1-3 =held shared; release held 2000-2001; lock 2 k 10-2302 =w; release w 2303-2304; " +
			"lock 3 k 700-701 =r shared; release r 702-703; try 4 k 1700-1701 =s shared; release s 1702-1703", "order"},
		{"two leases in the place of one earlier call", "lock 1 k 1-3 =held shared; release held 2000-2001; lock 2 k 10-2502 =w; release w 2503-2504; " +
			"lock 3 k 400-1000 =early shared; release early 1001-1002; lock 3 k 600-2005 =x; release x 2006-2007; lock 3 k 600-2105 =y; release y 2106-2107", "order"},
		{"a waiter of a process that held a lease of another limit", "lock 1 k 1-3 =held shared; release held 2000-2001; lock 2 k 2-11 =own shared; " +
			"release own 12-13; lock 2 k 10-2302 =w; release w 2303-2304; lock 3 k 600-2005 =x; release x 2006-2007", "order"},
		{"a machine that stalled for less", "disrupt 700-720 stalled; lock 1 k 1-3 =held shared; release held 2000-2001; lock 2 k 10-2302 =w; " +
			"release w 2303-2304; lock 3 k 600-2005 =x; release x 2006-2007", "order"},
	})
}

func TestIdleKeys(t *testing.T) {
	runCases(t, "run valid:9000; lock 4 k 60000-60001 =last shared; release last 60002-60003", []testCase{
		{"served late", "lock 1 k 1-3 =a; release a 500-501; lock 2 k 10-1300 =b; release b 1400-1401", "idle"},
		{"served late, though a call that came later was not", "lock 1 k 1-3 =a; release a 500-501; lock 2 k 10-1300 =b; release b 1400-1401; " +
			"lock 3 k 700-1500 =c; release c 1600-1601", "idle"},
		{"a permit left, and served late", "lock 1 k 1-3 =a limit:2; release a 500-501; lock 2 k 1-4 =b limit:2; release b 5000-5001; " +
			"lock 3 k 10-1300 =c limit:2; release c 5000-5001", "idle"},
		{"a reader beside a reader, served late", "lock 1 k 1-3 =a shared; release a 5000-5001; lock 2 k 10-1300 =b shared; release b 5000-5001", "idle"},
		{"both behind a reader that has left", "lock 1 k 1-3 =a shared; release a 500-501; lock 2 k 10-1302 =w; release w 1400-1401; " +
			"lock 3 k 20-1402 =b shared; release b 1500-1501", "idle"},
		{"served late, later after the beginning", "run begun:540; lock 1 k 1-3 =a; release a 500-501; lock 2 k 10-1300 =b; release b 1400-1401", "idle"},
	})
}

func TestUnservedCalls(t *testing.T) {
	runCases(t, "", []testCase{
		{"a release that never returned", "lock 1 k 1-3 =a #10; release a 10- none", "liveness"},
		{"a wait that never ended of a process that was paused", "pause 1 20-30; lock 1 k 1-", "liveness"},
		{"served late", "run recovered:50000; lock 2 k 40000-61000 =a valid:61500 #10; release a 61001-61002", "liveness"},
		{"served late by a call after all was well", "run recovered:50000; lock 2 k 52000-62001 =a valid:63000 #10; release a 62010-62011", "liveness"},
		{"a wait that was over long ago", "run recovered:50000; lock 2 k 40000-61000 =a valid:61500 #10 wait:10999; release a 61001-61002", "liveness"},
		{"an attempt that waits for long", "begin 1 p 1000-11201 interrupted wait:200; begin 2 p 1-1200 wait_timeout wait:1100", "liveness"},
		{"a payment that is stuck", "run recovered:50000; disrupt 10-12; begin 1 p 1-3 =a; commit a 10-12 unavailable answer:x; " +
			"begin 2 p 52000-52200 wait_timeout wait:200", "liveness"},
		{"never served again", "run recovered:50000; lock 1 k 1-3 =a #10; release a 10-12; lock 2 k 51000-52000 wait_timeout wait:1000", "liveness"},
		{"a wait that never ended", "lock 1 k 1-", "liveness"},
	})
}

func TestImpossibleGrants(t *testing.T) {
	runCases(t, "", []testCase{
		{"requested and granted meanwhile", "disrupt 100-200 no lock can be granted: replicas are missing; lock 1 k 110-120 =a; release a 130-131", "impossible-grant"},
		{"after a call of another process, which gave up", "disrupt 100-200 no lock can be granted: replicas are missing; lock 2 k 90-115 deadline wait:25; " +
			"lock 1 k 110-120 =a; release a 130-131", "impossible-grant"},
		{"after a call of the same process, which gave up before", "disrupt 100-200 no lock can be granted: replicas are missing; " +
			"lock 1 k 90-105 deadline wait:15; lock 1 k 110-120 =a; release a 130-131", "impossible-grant"},
		{"a wait is long", "run on:quorum ttl:400 begun:1000 ended:20000 recovered:18000; disrupt 2000-17000 a minority; lock 0 k 5000-16000 =l valid:16500; release l 16001-16002", "liveness"},
		{"a lock is unavailable", "run on:quorum ttl:400 begun:1000 ended:20000 recovered:18000; disrupt 2000-17000 a minority; " +
			"lock 0 k 5000-6000 unavailable", "errors"},
	})
}

func TestLongOutageRefusesNewCalls(t *testing.T) {
	runCases(t, "run failfast:500; disrupt 990-5010; disrupt 1000-5000 an outage; try 1 k 1001-1100 unavailable", []testCase{
		{"refused later", "lock 1 k 2000-2376 unavailable wait:376", "fail-fast"},
		{"waited to the end of its wait", "lock 1 k 2000-3000 wait_timeout wait:1000", "fail-fast"},
		{"waited to its deadline", "lock 1 k 2000-3000 deadline wait:1000", "fail-fast"},
		{"waited to the end of the outage", "lock 1 k 2000-5020 =a valid:5520 #10; release a 5021-5022", "fail-fast"},
		{"an attempt waited", "begin 1 p 2000-3000 wait_timeout wait:1000", "fail-fast"},
		{"waits without end", "lock 1 k 2000-", "fail-fast liveness"},
		{"waited from after the time", "lock 1 k 1851-5020 =a valid:5520 #10; release a 5021-5022", "fail-fast"},
		{"called before the end of the outage", "lock 1 k 4749-5020 =a valid:5520 #10; release a 5021-5022", "fail-fast"},
		{"waited behind a holder that had lost its lease", "lock 1 k 900-910 =b valid:1500 #9; release b 1510-1520 lost; " +
			"lock 1 k 1990-3000 wait_timeout wait:1010", "fail-fast"},
		{"waited behind a holder of another process", "lock 2 k 900-910 =b valid:2000 #9; release b 2010-2020 lost; " +
			"lock 1 k 1990-3000 wait_timeout wait:1010", "fail-fast"},
		{"a process that was paused later", "pause 1 2600-2900; lock 1 k 2000-3000 unavailable wait:1000", "fail-fast"},
		{"a process that was killed after a wait", "kill 1 3000; lock 1 k 2000-", "fail-fast"},
		{"another process lagged", "lag 2 2010-2900; lock 1 k 2000-3000 unavailable wait:1000", "fail-fast"},
	})
}
