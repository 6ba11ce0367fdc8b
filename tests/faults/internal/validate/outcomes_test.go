package validate

import "testing"

func TestFailuresNeedACause(t *testing.T) {
	runCases(t, "", []testCase{
		{"the end of a wait without end", "lock 1 k 5000-5100 wait_timeout", "errors"},
		{"unavailable beside an open commit of another process", "disrupt 1000-2000; begin 1 pay 500-600 =a; commit a 1100-1900 unavailable answer:answer; " +
			"begin 2 pay 5000-5100 unavailable", "errors"},
		{"unavailable after an abort that may have been refused", "disrupt 1000-1200; begin 1 pay 500-600 =a; abort a 1100-1101 deadline; " +
			"begin 1 pay 5000-5100 unavailable", "errors"},
		{"unavailable while a command of another process was slow", "lock 2 j 4990-4991 =a; release a 5000-5063; lock 1 k 5050-5150 unavailable", ""},
		{"unavailable while one was fast", "lock 2 j 4990-4991 =a; release a 5000-5061; lock 1 k 5050-5150 unavailable", "errors"},
		{"unavailable after one was slow", "lock 2 j 4990-4991 =a; release a 5000-5063; lock 1 k 5064-5164 unavailable", "errors"},
		{"unavailable while one of its process was slow", "lock 1 j 4990-4991 =a; release a 5000-5063; lock 1 k 5050-5150 unavailable", "errors"},
		{"failed", "lock 1 k 5000-5100 failed", "errors"},
		{"failed during a disruption", "disrupt 5000-5100; lock 1 k 5000-5100 failed", "errors"},
		{"unavailable", "lock 1 k 5000-5100 unavailable", "errors"},
		{"unavailable long after a disruption", "disrupt 1-4749; lock 1 k 5000-5100 unavailable", "errors"},
		{"unavailable later than that", "run timeout:200; disrupt 1-4599; lock 1 k 5000-5100 unavailable", "errors"},
		{"unavailable long after a disruption of several servers", "run on:cluster; disrupt 1-1999; lock 1 k 5000-5100 unavailable", "errors"},
		{"unavailable before a disruption", "disrupt 5101-; lock 1 k 5000-5100 unavailable", "errors"},
		{"unavailable when another was paused", "pause 2 4000-5050; lock 1 k 5000-5100 unavailable", "errors"},
		{"a deadline that had not passed", "lock 1 k 5000-5100 deadline wait:200", "errors"},
		{"unavailable on a machine that had stalled", "disrupt 1-4874 stalled; lock 1 k 5000-5100 unavailable", "errors"},
		{"unavailable on a machine that stalls elsewhere", "disrupt 10000-14999 stalled; lock 1 k 5000-5100 unavailable", "errors"},
		{"unavailable to a process that had lagged", "lag 1 4800-4874; lock 1 k 5000-5100 unavailable", "errors"},
		{"unavailable to a process that lagged later", "lag 1 5101-5200; lock 1 k 5000-5100 unavailable", "errors"},
		{"unavailable to a process that lagged long before the end of a wait", "lag 1 5000-7624; lock 1 k 5000-8000 unavailable wait:5000", "errors"},
		{"unavailable when another lagged", "lag 2 5000-5100; lock 1 k 5000-5100 unavailable", "errors"},
		{"a deadline that had not passed, in a process that lagged", "lag 1 5000-5100; lock 1 k 5000-5100 deadline wait:200", "errors"},
		{"a deadline without a cause", "lock 1 k 5000-5100 deadline", "errors"},
		{"an answer that was not kept", "begin 1 p 1-2 unreplayable", "errors"},
		{"after the next probe", "run failfast:500; disrupt 1000-4000; lock 1 k 4751-4752 unavailable wait:1000", "errors"},
		{"without probes", "disrupt 1000-4000; lock 1 k 4750-4751 unavailable wait:1000", "errors"},
	})
}

func TestFailuresOfRedials(t *testing.T) {
	runCases(t, "", []testCase{
		{"loses a lease, many servers", "run on:cluster; disrupt 1000-4000; try 1 k 4099-4100 unavailable dial; lock 1 l 7001-7002 =a #1; ended a 7501 lost", "errors"},
		{"refuses for longer", "disrupt 1000-4000; try 1 k 5250-5251 unavailable dial", "errors"},
		{"refuses without a disruption", "try 1 k 4999-5000 unavailable dial", "errors"},
		{"refuses while another disruption lasts", "disrupt 1000-4000; disrupt 4800-5000; try 1 k 4899-4900 unavailable dial; try 1 k 4500-4510 unavailable", "errors"},
		{"gets no answer instead", "disrupt 1000-4000; try 1 k 4900-4910 unavailable", "errors"},
		{"gets no answer long afterwards", "disrupt 1000-4000; try 1 k 4299-4300 unavailable dial; try 1 k 4551-4561 unavailable", "errors"},
		{"loses a lease, another was refused", "disrupt 1000-4000; try 2 k 4899-4900 unavailable dial; lock 1 l 4900-4901 =a #1; ended a 5400 lost", "errors"},
		{"refuses for longer than many servers may", "run on:quorum timeout:100; disrupt 1000-4000; try 1 k 5189-5190 unavailable dial; " +
			"try 1 k 5201-5211 unavailable", "errors"},
	})
}

func TestLossesNeedACause(t *testing.T) {
	runCases(t, "", []testCase{
		{"at its end", "lock 1 k 1000-1001 =a #1; ended a 1500 lost", "errors"},
		{"at its release", "lock 1 k 1000-1001 =a #1; release a 1002-1003 lost", "errors"},
		{"when it was extended", "lock 1 k 1000-1001 =a #1; extend a 1002-1003 lost", "errors"},
		{"at its commit", "begin 1 k 1000-1001 =a; commit a 1002-1003 lost", "errors"},
		{"long after a disruption", "disrupt 700-749; lock 1 k 1000-1001 =a #1; release a 1200-1201 lost", "errors"},
		{"before a disruption", "disrupt 1202-; lock 1 k 1000-1001 =a #1; release a 1200-1201 lost", "errors"},
		{"when others lost data before", "lose 700-701 l; lock 1 k 1000-1001 =a #1; release a 1200-1201 lost", "errors"},
		{"another was paused", "pause 2 1100-1400; lock 1 k 1000-1001 =a #1; ended a 1500 lost", "errors"},
		{"early, on a machine that stalled", "disrupt 1050-1070 stalled; lock 1 k 1000-1001 =a #1; ended a 1100 lost", "errors"},
		{"early, on a machine that is too slow", "disrupt 10000-16000 stalled; lock 1 k 1000-1001 =a #1; ended a 1100 lost", "errors"},
		{"early, which is not renewed", "lock 1 k 1000-1001 =a #1 unrenewed; ended a 1100 lost", "errors"},
		{"at once", "lock 1 k 1000-1001 =a #1; ended a 1002 lost", "errors"},
		{"early, when its process had lagged", "lag 1 1010-1090; lock 1 k 1000-1001 =a #1; ended a 1100 lost", "errors"},
		{"at its end, when its process had lagged", "lag 1 1100-1200; lock 1 k 1000-1001 =a #1; ended a 1500 lost", ""},
		{"at its end, which was granted while the clients connected", "run begun:1002; lock 1 k 1000-1001 =a #1; ended a 1500 lost", ""},
		{"early, which was granted while the clients connected", "run begun:1002; lock 1 k 1000-1001 =a #1; ended a 1100 lost", "errors"},
		{"long after its process had lagged", "lag 1 1001-1021; lock 1 k 1000-1001 =a #1; ended a 6000 lost valid:5950", "errors"},
		{"long after a slow command of another process", "lock 2 j 1005-1006 =b #1; release b 1100-1163; lock 1 k 1000-1001 =a #1; ended a 6000 lost valid:5950", "errors"},
		{"long after the clients connected", "run begun:1002; lock 1 k 1000-1001 =a #1; ended a 6000 lost valid:5950", "errors"},
		{"long after the machine stalled", "disrupt 1001-1022 stalled; lock 1 k 1000-1001 =a #1; ended a 6000 lost valid:5950", "errors"},
		{"at its end, on a machine that stalled", "disrupt 1100-1200 stalled; lock 1 k 1000-1001 =a #1; ended a 1500 lost", ""},
		{"at its end, after a slow command of its process", "lock 1 j 1005-1006 =b #1; release b 1100-1163; lock 1 k 1000-1001 =a #1; ended a 1500 lost", "errors"},
		{"at its end, when another had lagged in a command", "lag 2 1100-1200; lock 2 j 1005-1006 =b #1; release b 1099-1201; lock 1 k 1000-1001 =a #1; ended a 1500 lost", "errors"},
		{"at its end, when another was paused in a command", "pause 2 1100-1400; lock 2 j 1005-1006 =b #1; release b 1099-1401; lock 1 k 1000-1001 =a #1; ended a 1500 lost", "errors"},
		{"at its end, when another had lagged", "lag 2 1100-1200; lock 1 k 1000-1001 =a #1; ended a 1500 lost", "errors"},
		{"at its end, after a slow command of another process", "lock 2 j 1005-1006 =b #1; release b 1100-1163; lock 1 k 1000-1001 =a #1; ended a 1500 lost", ""},
	})
}

func TestWaitsEndEarly(t *testing.T) {
	runCases(t, "", []testCase{
		{"not over", "lock 1 k 1000-1449 wait_timeout wait:500", "errors"},
		{"of an attempt, not over", "begin 1 k 1000-1449 wait_timeout wait:500", "errors"},
		{"busy instead", "lock 1 k 1000-1001 busy wait:500", "errors"},
		{"busy instead of for ever", "lock 1 k 1000-1001 busy", "errors"},
		{"busy instead of an answer", "begin 1 k 1000-1001 busy wait:500", "errors"},
	})
}

func TestDoneRequestsAreReplayed(t *testing.T) {
	runCases(t, "", []testCase{
		{"after a loss of another key", "lose 500-501 k; begin 1 p 1-2 =a; commit a 10-20 answer:x; begin 2 p 1000-1100 interrupted", "attempts errors"},
		{"busy", "disrupt 1050-1060; begin 1 p 1-2 =a; commit a 10-20 answer:x; begin 2 p 1000-1100 busy wait:100", "errors"},
		{"not in time", "begin 1 p 1-2 =a; commit a 10-20 answer:x; begin 2 p 1000-1100 wait_timeout wait:126", "errors"},
		{"refused", "begin 1 p 1-2 =a; commit a 10-20 answer:x; begin 2 p 1000-1100 unavailable", "errors"},
		{"interrupted", "disrupt 1050-1060; begin 1 p 1-2 =a; commit a 10-20 answer:x; begin 2 p 1000-1100 interrupted", "attempts errors"},
	})
}

func TestMalformedHistories(t *testing.T) {
	runCases(t, "", []testCase{
		{"before its call", "lock 1 k 5-3 =a #1", "malformed"},
		{"never called", "lock 1 k 0-3 =a #1", "malformed"},
		{"an outcome without a return", "lock 1 k 5- =a #1", "malformed"},
		{"no outcome", "lock 1 k 1-2", "malformed"},
		{"no validity", "lock 1 k 5-6 =a valid:0 #1", "malformed"},
		{"granted twice", "lock 1 k 5-6 =a #1; lock 1 k 7-8 =a #2", "malformed"},
		{"of no lease", "release a 1-2", "malformed"},
		{"no ttl", "run ttl:0", "malformed"},
		{"no name", "lock 1 k 5-6 = #1", "malformed"},
	})
}

func TestTooManyGoroutines(t *testing.T) {
	runCases(t, "", []testCase{
		{"of a process", "size 501", "goroutines"},
	})
}
