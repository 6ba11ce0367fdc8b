package redisstore

var sharedAsks = []sharedTransition{
	{name: "a reader, free", do: asks("A1*"), first: "granted, 0 waiting", after: "shared 10 | | A1*=10"},
	{name: "a permit, free", do: asks("A1/5"), first: "granted, 0 waiting", after: "shared 10 | | A1/5=10"},
	{
		name: "a reader beside a reader", before: "shared 9 | | B1*=9", do: asks("A1*"),
		first: "granted, 0 waiting", after: "shared 10 | | B1*=9 A1*=10",
	},
	{
		name: "the marker lives as long as the last lease", before: "shared 30 | | B1*=30", do: asks("A1*"),
		first: "granted, 0 waiting", after: "shared 30 | | A1*=10 B1*=30",
	},
	{
		name: "a permit while one is left", before: "shared 9 | | B1/2=9", do: asks("A1/2"),
		first: "granted, 0 waiting", after: "shared 10 | | B1/2=9 A1/2=10",
	},
	{
		name: "no permit is left: joins, and sends hints to the holders", before: "shared 9 | | B1/2=9 C1/2=8", listening: "B C", do: asks("A1/2"),
		first: "shared, 8", after: "shared 9 A1/2@1 | A1/2 | C1/2=8 B1/2=9", hints: "B1/2 B1/2 C1/2 C1/2",
	},
	{
		name: "a smaller limit waits for more leases to end", before: "shared 9 | | B1/5=9 C1/5=8 D1/5=7", do: asks("A1/2"),
		first: "shared, 8", after: "shared 9 A1/2@1 | A1/2 | D1/5=7 C1/5=8 B1/5=9",
	},
	{
		name: "a larger limit has room", before: "shared 9 | | B1/3=9 C1/3=8 D1/3=7", do: asks("A1/5"),
		first: "granted, 0 waiting", after: "shared 10 | | D1/3=7 C1/3=8 B1/3=9 A1/5=10",
	},
	{
		name: "readers count against permits", before: "shared 9 | | B1*=9 C1*=8", do: asks("A1/2"),
		first: "shared, 8", after: "shared 9 A1/2@1 | A1/2 | C1*=8 B1*=9",
	},
	{
		name: "an exclusive token waits for all leases", before: "shared 9 | | B1*=9 C1*=8", listening: "B C", do: asks("A1"),
		first: "shared, 9", after: "shared 9 A1@1 | A1 | C1*=8 B1*=9", hints: "B1* B1* C1* C1*",
	},
	{
		name: "try a permit, none is left", before: "shared 9 | | B1/1=9", listening: "B", do: asks("A1/1", "try"),
		first: "shared, 9", after: "shared 9 | | B1/1=9",
	},
	{
		name: "try an exclusive token, a reader is out", before: "shared 9 | | B1*=9", listening: "B", do: asks("A1", "try"),
		first: "shared, 9", after: "shared 9 | | B1*=9",
	},
	{
		name: "a try does not pass a waiting writer", before: "shared 9 | C1 | B1*=9", listening: "C", do: asks("A1*", "try"),
		first: "shared, 1", after: "shared 9 C1@1 | C1 | B1*=9", hints: "C1",
	},
	{
		name: "a try passes a writer that does not listen", before: "shared 9 | C1 | B1*=9", do: asks("A1*", "try"),
		first: "granted, 0 waiting", after: "shared 10 | | B1*=9 A1*=10",
	},
	{
		name: "a try in the queue keeps its place", before: "shared 9 C1@1 | C1 A1* D1 | B1*=9", listening: "C D", do: asks("A1*", "try"),
		first: "shared, 1", after: "shared 9 C1@1 | C1 A1* D1 | B1*=9",
	},
	{
		name: "the set of a wrong marker is void", before: "shared 9 | | ", do: asks("A1*"),
		first: "granted, 0 waiting", after: "shared 10 | | A1*=10",
	},

	// Leases that have ended.
	{name: "a permit whose lease has ended", before: "shared 9 | | B1/1=-1", do: asks("A1/1"), first: "granted, 0 waiting", after: "shared 10 | | A1/1=10"},
	{
		name: "one lease has ended, one is out", before: "shared 9 | | B1/2=-1 C1/2=9", do: asks("A1/2"),
		first: "granted, 0 waiting", after: "shared 10 | | C1/2=9 A1/2=10",
	},
	{name: "all leases have ended: exclusive", before: "shared 9 | | B1*=-1", do: asks("A1"), first: "granted, 0 waiting", after: "A1 10 | |"},
	{
		name: "a lease that has ended does not come back", before: "shared 9 | | A1/1=-1 B1/1=9", do: asks("A1/1"),
		first: "shared, 9", after: "shared 9 A1/1@1 | A1/1 | B1/1=9",
	},
	{name: "a set without a marker is void", before: "- | | B1*=9 C1*=9", do: asks("A1/1"), first: "granted, 0 waiting", after: "shared 10 | | A1/1=10"},
	{
		name: "a set beside an exclusive holder is void", before: "B1 10 | | C1*=9", do: asks("C1*"),
		first: "held by B1, 10", after: "B1 10 | C1* | C1*=9",
	},
	{
		name: "an ask notices the end of a lease, and the first of the queue is granted", before: "shared 9 | D1/2 | B1/2=-1 C1/2=9", listening: "D",
		do: asks("A1/2"), first: "shared, 1", after: "shared 9 A1/2@1 | A1/2 | D1/2=1 C1/2=9", hints: "D1/2 D1/2 D1/2",
	},

	// Confirmations.
	{name: "confirm a permit", before: "shared 1 | | A1/5=1", do: asks("A1/5"), first: "granted, 0 waiting", after: "shared 10 | | A1/5=10"},
	{name: "confirm: never shorter", before: "shared 30 | | A1/5=30", do: asks("A1/5"), first: "granted, 0 waiting", after: "shared 30 | | A1/5=30"},
	{
		name: "confirm while others wait", before: "shared 1 | B1/1 | A1/1=1", listening: "B", do: asks("A1/1"),
		first: "granted, 1 waiting", after: "shared 10 | B1/1 | A1/1=10",
	},
	{
		name: "confirm: leaves the queue", before: "shared 1 | A1/1 B1/1 | A1/1=1", listening: "B", do: asks("A1/1"),
		first: "granted, 1 waiting", after: "shared 10 | B1/1 | A1/1=10",
	},
	{
		name: "confirm: the next of the queue has room", before: "shared 1 | B1* C1 | A1*=1", listening: "B C", do: asks("A1*"),
		first: "granted, 1 waiting", after: "shared 10 | C1 | B1*=1 A1*=10", hints: "B1*",
	},

	// A queue.
	{name: "behind a foreign client", before: "x! 10 | |", do: asks("A1*"), first: "foreign x!, 10", after: "x! 10 | A1* |"},
	{name: "behind a foreign client with a similar value", before: "shared! 10 | |", do: asks("A1*"), first: "foreign shared!, 10", after: "shared! 10 | A1* |"},
	{name: "behind an exclusive holder: a hint", before: "B1 10 | |", listening: "B", do: asks("A1*"), first: "held by B1, 10", after: "B1 10 | A1* |", hints: "B1 B1"},
	{name: "second in the queue: no hint", before: "B1 10 | C1 |", listening: "B", do: asks("A1*"), first: "held by B1, 10", after: "B1 10 | C1 A1* |"},
	{
		name: "a waiting writer stops a new reader", before: "shared 9 | C1 | B1*=9", listening: "B C", do: asks("A1*"),
		first: "shared, 1", after: "shared 9 C1@1 | C1 A1* | B1*=9", hints: "C1",
	},
	{
		name: "a writer that does not listen loses its place", before: "shared 9 | C1 | B1*=9", listening: "B", do: asks("A1*"),
		first: "granted, 0 waiting", after: "shared 10 | | B1*=9 A1*=10",
	},
	{
		name: "a head has its time", before: "shared 9 C1@0.6 | C1 | B1*=9", do: asks("A1*"),
		first: "shared, 1", after: "shared 9 C1@1 | C1 A1* | B1*=9",
	},
	{
		name: "a head has no more than its time", before: "shared 9 C1@-1 | C1 | B1*=9", listening: "C", do: asks("A1*"),
		first: "granted, 0 waiting", after: "shared 10 C1@-1 | | B1*=9 A1*=10",
	},
	{
		name: "a head has no more than its time if the clock was set back", before: "shared 9 C1@500 | C1 | B1*=9", listening: "C", do: asks("A1*"),
		first: "shared, 1", after: "shared 9 C1@1 | C1 A1* | B1*=9",
	},
	{
		name: "a small limit stops a larger one", before: "shared 9 | C1/2 | B1/5=9 D1/5=9", listening: "C", do: asks("A1/5"),
		first: "shared, 1", after: "shared 9 C1/2@1 | C1/2 A1/5 | B1/5=9 D1/5=9", hints: "C1/2",
	},
	{
		name: "a head shows that it lives", before: "shared 9 C1@-9 | C1 A1* | B1*=9", listening: "C", do: asks("C1"),
		first: "shared, 9", after: "shared 9 C1@1 | C1 A1* | B1*=9",
	},
	{name: "free, and the queue does not listen", before: "- | B1 junk! C1* |", do: asks("A1*"), first: "granted, 0 waiting", after: "shared 10 | | A1*=10"},
	{
		name: "free, and a reader is first: both", before: "- | B1* |", listening: "B", do: asks("A1*"),
		first: "granted, 0 waiting", after: "shared 10 | | B1*=1 A1*=10", hints: "B1*",
	},
	{
		name: "free, and a writer is first", before: "- | B1 C1* |", listening: "B C", do: asks("A1*"),
		first: "held by B1, 1", after: "B1 1 | C1* A1* |", hints: "B1",
	},
	{
		name: "exclusive, and the lease of a reader has ended", before: "shared 9 | C1* | B1*=-1", listening: "C", do: asks("A1"),
		first: "shared, 1", after: "shared 1 A1@1 | A1 | C1*=1", hints: "C1* C1* C1*",
	},

	// Fencing numbers.
	{name: "the first number of a phase", before: "shared 9 | | B1*=9", do: asks("A1*", "number"), first: "granted, 0 waiting, number N", after: "shared 10 #N | | B1*=9 A1*=10"},
	{
		name: "all leases of a phase have the same number", before: "shared 9 #77 | | B1*=9", do: asks("A1*", "number"),
		first: "granted, 0 waiting, number 77", after: "shared 10 #77 | | B1*=9 A1*=10",
	},
	{name: "a new phase has a new number", do: asks("A1*", "number"), first: "granted, 0 waiting, number N", after: "shared 10 #N | | A1*=10"},
	{
		name: "a phase ends with its last lease", before: "shared 9 #77 | | B1*=-1", do: asks("A1*", "number"),
		first: "granted, 0 waiting, number N", after: "shared 10 #N | | A1*=10",
	},
	{
		name: "a phase ends with its last lease: no number is wanted", before: "shared 9 #77 | | B1*=-1", do: asks("A1*"),
		first: "granted, 0 waiting", after: "shared 10 | | A1*=10",
	},
	{name: "a set without a marker has no number", before: "- | | B1*=9", do: asks("A1*", "number"), first: "granted, 0 waiting, number N", after: "shared 10 #N | | A1*=10"},
}
