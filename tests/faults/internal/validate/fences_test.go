package validate

import "testing"

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
