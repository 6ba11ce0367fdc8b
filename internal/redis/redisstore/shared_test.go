package redisstore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

var sharedAsks = []sharedTransition{
	{name: "a reader, free", do: asks("A1*"), first: "granted, 0 waiting", after: "shared 10 | | A1*=10"},
	{name: "a permit, free", do: asks("A1/5"), first: "granted, 0 waiting", after: "shared 10 | | A1/5=10"},
	{name: "a reader beside a reader", before: "shared 9 | | B1*=9", do: asks("A1*"), first: "granted, 0 waiting", after: "shared 10 | | B1*=9 A1*=10"},
	{name: "the marker lives as long as the last lease", before: "shared 30 | | B1*=30", do: asks("A1*"), first: "granted, 0 waiting", after: "shared 30 | | A1*=10 B1*=30"},
	{name: "a permit while one is left", before: "shared 9 | | B1/2=9", do: asks("A1/2"), first: "granted, 0 waiting", after: "shared 10 | | B1/2=9 A1/2=10"},
	{
		name: "no permit is left: joins, and sends hints to the holders", before: "shared 9 | | B1/2=9 C1/2=8", listening: "B C", do: asks("A1/2"),
		first: "shared, 8", after: "shared 9 A1/2@1 | A1/2 | C1/2=8 B1/2=9", hints: "B1/2 B1/2 C1/2 C1/2",
	},
	{name: "a smaller limit waits for more leases to end", before: "shared 9 | | B1/5=9 C1/5=8 D1/5=7", do: asks("A1/2"), first: "shared, 8", after: "shared 9 A1/2@1 | A1/2 | D1/5=7 C1/5=8 B1/5=9"},
	{name: "a larger limit has room", before: "shared 9 | | B1/3=9 C1/3=8 D1/3=7", do: asks("A1/5"), first: "granted, 0 waiting", after: "shared 10 | | D1/3=7 C1/3=8 B1/3=9 A1/5=10"},
	{name: "readers count against permits", before: "shared 9 | | B1*=9 C1*=8", do: asks("A1/2"), first: "shared, 8", after: "shared 9 A1/2@1 | A1/2 | C1*=8 B1*=9"},
	{name: "an exclusive token waits for all leases", before: "shared 9 | | B1*=9 C1*=8", listening: "B C", do: asks("A1"), first: "shared, 9", after: "shared 9 A1@1 | A1 | C1*=8 B1*=9", hints: "B1* B1* C1* C1*"},
	{name: "try a permit, none is left", before: "shared 9 | | B1/1=9", listening: "B", do: asks("A1/1", "try"), first: "shared, 9", after: "shared 9 | | B1/1=9"},
	{name: "try an exclusive token, a reader is out", before: "shared 9 | | B1*=9", listening: "B", do: asks("A1", "try"), first: "shared, 9", after: "shared 9 | | B1*=9"},
	{name: "a try does not pass a waiting writer", before: "shared 9 | C1 | B1*=9", listening: "C", do: asks("A1*", "try"), first: "shared, 1", after: "shared 9 C1@1 | C1 | B1*=9", hints: "C1"},
	{name: "a try passes a writer that does not listen", before: "shared 9 | C1 | B1*=9", do: asks("A1*", "try"), first: "granted, 0 waiting", after: "shared 10 | | B1*=9 A1*=10"},
	{name: "a try in the queue keeps its place", before: "shared 9 C1@1 | C1 A1* D1 | B1*=9", listening: "C D", do: asks("A1*", "try"), first: "shared, 1", after: "shared 9 C1@1 | C1 A1* D1 | B1*=9"},
	{name: "the set of a wrong marker is void", before: "shared 9 | | ", do: asks("A1*"), first: "granted, 0 waiting", after: "shared 10 | | A1*=10"},

	// Leases that have ended.
	{name: "a permit whose lease has ended", before: "shared 9 | | B1/1=-1", do: asks("A1/1"), first: "granted, 0 waiting", after: "shared 10 | | A1/1=10"},
	{name: "one lease has ended, one is out", before: "shared 9 | | B1/2=-1 C1/2=9", do: asks("A1/2"), first: "granted, 0 waiting", after: "shared 10 | | C1/2=9 A1/2=10"},
	{name: "all leases have ended: exclusive", before: "shared 9 | | B1*=-1", do: asks("A1"), first: "granted, 0 waiting", after: "A1 10 | |"},
	{name: "a lease that has ended does not come back", before: "shared 9 | | A1/1=-1 B1/1=9", do: asks("A1/1"), first: "shared, 9", after: "shared 9 A1/1@1 | A1/1 | B1/1=9"},
	{name: "a set without a marker is void", before: "- | | B1*=9 C1*=9", do: asks("A1/1"), first: "granted, 0 waiting", after: "shared 10 | | A1/1=10"},
	{name: "a set beside an exclusive holder is void", before: "B1 10 | | C1*=9", do: asks("C1*"), first: "held by B1, 10", after: "B1 10 | C1* | C1*=9"},
	{
		name: "an ask notices the end of a lease, and the first of the queue is granted", before: "shared 9 | D1/2 | B1/2=-1 C1/2=9", listening: "D",
		do: asks("A1/2"), first: "shared, 1", after: "shared 9 A1/2@1 | A1/2 | D1/2=1 C1/2=9", hints: "D1/2 D1/2 D1/2",
	},

	// Confirmations.
	{name: "confirm a permit", before: "shared 1 | | A1/5=1", do: asks("A1/5"), first: "granted, 0 waiting", after: "shared 10 | | A1/5=10"},
	{name: "confirm: never shorter", before: "shared 30 | | A1/5=30", do: asks("A1/5"), first: "granted, 0 waiting", after: "shared 30 | | A1/5=30"},
	{name: "confirm while others wait", before: "shared 1 | B1/1 | A1/1=1", listening: "B", do: asks("A1/1"), first: "granted, 1 waiting", after: "shared 10 | B1/1 | A1/1=10"},
	{name: "confirm: leaves the queue", before: "shared 1 | A1/1 B1/1 | A1/1=1", listening: "B", do: asks("A1/1"), first: "granted, 1 waiting", after: "shared 10 | B1/1 | A1/1=10"},
	{name: "confirm: the next of the queue has room", before: "shared 1 | B1* C1 | A1*=1", listening: "B C", do: asks("A1*"), first: "granted, 1 waiting", after: "shared 10 | C1 | B1*=1 A1*=10", hints: "B1*"},

	// A queue.
	{name: "behind a foreign client", before: "x! 10 | |", do: asks("A1*"), first: "foreign x!, 10", after: "x! 10 | A1* |"},
	{name: "behind a foreign client with a similar value", before: "shared! 10 | |", do: asks("A1*"), first: "foreign shared!, 10", after: "shared! 10 | A1* |"},
	{name: "behind an exclusive holder: a hint", before: "B1 10 | |", listening: "B", do: asks("A1*"), first: "held by B1, 10", after: "B1 10 | A1* |", hints: "B1 B1"},
	{name: "second in the queue: no hint", before: "B1 10 | C1 |", listening: "B", do: asks("A1*"), first: "held by B1, 10", after: "B1 10 | C1 A1* |"},
	{name: "a waiting writer stops a new reader", before: "shared 9 | C1 | B1*=9", listening: "B C", do: asks("A1*"), first: "shared, 1", after: "shared 9 C1@1 | C1 A1* | B1*=9", hints: "C1"},
	{name: "a writer that does not listen loses its place", before: "shared 9 | C1 | B1*=9", listening: "B", do: asks("A1*"), first: "granted, 0 waiting", after: "shared 10 | | B1*=9 A1*=10"},
	{name: "a head has its time", before: "shared 9 C1@0.6 | C1 | B1*=9", do: asks("A1*"), first: "shared, 1", after: "shared 9 C1@1 | C1 A1* | B1*=9"},
	{name: "a head has no more than its time", before: "shared 9 C1@-1 | C1 | B1*=9", listening: "C", do: asks("A1*"), first: "granted, 0 waiting", after: "shared 10 C1@-1 | | B1*=9 A1*=10"},
	{name: "a head has no more than its time if the clock was set back", before: "shared 9 C1@500 | C1 | B1*=9", listening: "C", do: asks("A1*"), first: "shared, 1", after: "shared 9 C1@1 | C1 A1* | B1*=9"},
	{name: "a small limit stops a larger one", before: "shared 9 | C1/2 | B1/5=9 D1/5=9", listening: "C", do: asks("A1/5"), first: "shared, 1", after: "shared 9 C1/2@1 | C1/2 A1/5 | B1/5=9 D1/5=9", hints: "C1/2"},
	{name: "a head shows that it lives", before: "shared 9 C1@-9 | C1 A1* | B1*=9", listening: "C", do: asks("C1"), first: "shared, 9", after: "shared 9 C1@1 | C1 A1* | B1*=9"},
	{name: "free, and the queue does not listen", before: "- | B1 junk! C1* |", do: asks("A1*"), first: "granted, 0 waiting", after: "shared 10 | | A1*=10"},
	{name: "free, and a reader is first: both", before: "- | B1* |", listening: "B", do: asks("A1*"), first: "granted, 0 waiting", after: "shared 10 | | B1*=1 A1*=10", hints: "B1*"},
	{name: "free, and a writer is first", before: "- | B1 C1* |", listening: "B C", do: asks("A1*"), first: "held by B1, 1", after: "B1 1 | C1* A1* |", hints: "B1"},
	{name: "exclusive, and the lease of a reader has ended", before: "shared 9 | C1* | B1*=-1", listening: "C", do: asks("A1"), first: "shared, 1", after: "shared 1 A1@1 | A1 | C1*=1", hints: "C1* C1* C1*"},

	// Fencing numbers.
	{name: "the first number of a phase", before: "shared 9 | | B1*=9", do: asks("A1*", "number"), first: "granted, 0 waiting, number N", after: "shared 10 #N | | B1*=9 A1*=10"},
	{name: "all leases of a phase have the same number", before: "shared 9 #77 | | B1*=9", do: asks("A1*", "number"), first: "granted, 0 waiting, number 77", after: "shared 10 #77 | | B1*=9 A1*=10"},
	{name: "a new phase has a new number", do: asks("A1*", "number"), first: "granted, 0 waiting, number N", after: "shared 10 #N | | A1*=10"},
	{name: "a phase ends with its last lease", before: "shared 9 #77 | | B1*=-1", do: asks("A1*", "number"), first: "granted, 0 waiting, number N", after: "shared 10 #N | | A1*=10"},
	{name: "a phase ends with its last lease: no number is wanted", before: "shared 9 #77 | | B1*=-1", do: asks("A1*"), first: "granted, 0 waiting", after: "shared 10 | | A1*=10"},
	{name: "a set without a marker has no number", before: "- | | B1*=9", do: asks("A1*", "number"), first: "granted, 0 waiting, number N", after: "shared 10 #N | | A1*=10"},
}

// briefSharedAsks are those with the brief form of the command.
var briefSharedAsks = []sharedTransition{
	{name: "free", do: asks("A1/2", "briefly"), first: "granted, 0 waiting", after: "shared 10 | | A1/2=10"},
	{name: "a reader, free", do: asks("A1*", "briefly"), first: "granted, 0 waiting", after: "shared 10 | | A1*=10"},
	{name: "beside another", before: "shared 9 | | B1/2=9", do: asks("A1/2", "briefly"), first: "granted, 0 waiting", after: "shared 10 | | B1/2=9 A1/2=10"},
	{name: "beside one that ends later", before: "shared 30 | | B1/2=30", do: asks("A1/2", "briefly"), first: "granted, 0 waiting", after: "shared 30 | | A1/2=10 B1/2=30"},
	{name: "in a phase with a number", before: "shared 9 #77 | | B1*=9", do: asks("A1*", "briefly"), first: "granted, 0 waiting", after: "shared 10 #77 | | B1*=9 A1*=10"},
	{name: "full", before: "shared 9 | | B1/2=9 C1/2=8", listening: "B C", do: asks("A1/2", "briefly"), first: "no room", after: "shared 9 | | C1/2=8 B1/2=9"},
	{name: "full, and others wait", before: "shared 9 | D1/2 | B1/2=9 C1/2=8", listening: "D", do: asks("A1/2", "briefly"), first: "no room", after: "shared 9 | D1/2 | C1/2=8 B1/2=9"},
	{name: "a writer has the key", before: "B1 10 | |", listening: "B", do: asks("A1*", "briefly"), first: "no room", after: "B1 10 | |"},
	{name: "a foreign client has the key", before: "x! 10 | | C1*=9", do: asks("A1*", "briefly"), first: "no room", after: "x! 10 | | C1*=9"},
	{name: "an exclusive script has handed the key to the token: by the long form", before: "A1/2 1 | |", do: asks("A1/2", "briefly"), first: "granted, 0 waiting", after: "shared 10 | | A1/2=10"},
	{name: "others wait: by the long form", before: "shared 9 | C1 | B1*=9", listening: "C", do: asks("A1*", "briefly"), first: "shared, 1", after: "shared 9 C1@1 | C1 | B1*=9", hints: "C1"},
	{name: "a dead writer waits: by the long form", before: "shared 9 | C1 | B1*=9", do: asks("A1*", "briefly"), first: "granted, 0 waiting", after: "shared 10 | | B1*=9 A1*=10"},
	{name: "free, and a reader is first: by the long form", before: "- | B1* |", listening: "B", do: asks("A1*", "briefly"), first: "granted, 0 waiting", after: "shared 10 | | B1*=1 A1*=10", hints: "B1*"},
	{name: "a void set: by the long form", before: "- | | B1*=9 C1*=9", do: asks("A1/1", "briefly"), first: "granted, 0 waiting", after: "shared 10 | | A1/1=10"},
	{name: "all leases have ended: by the long form", before: "shared 9 #77 | | B1/1=-1", do: asks("A1/1", "briefly"), first: "granted, 0 waiting", after: "shared 10 | | A1/1=10"},
	{name: "confirm: by the long form", before: "shared 1 | | A1/5=1", do: asks("A1/5", "briefly"), first: "granted, 0 waiting", after: "shared 10 | | A1/5=10"},
}

var sharedReleases = []sharedTransition{
	{name: "the last lease", before: "shared 9 | | A1*=9", do: releases("A1*", ""), first: "freed", second: "not held", after: "- | |"},
	{name: "one of two: the marker lives as long as the other", before: "shared 30 | | A1*=30 B1*=5", do: releases("A1*", ""), first: "freed", second: "not held", after: "shared 5 | | B1*=5"},
	{
		name: "a permit, to the first of the queue", before: "shared 9 | C1/2 D1/2 | A1/2=9 B1/2=8", listening: "C D", do: releases("A1/2", ""),
		first: "handed", second: "not held", after: "shared 8 | D1/2 | C1/2=1 B1/2=8", hints: "C1/2",
	},
	{
		name: "a permit, to the first that listens", before: "shared 9 | C1/2 D1/2 | A1/2=9 B1/2=8", listening: "D", do: releases("A1/2", ""),
		first: "handed", second: "not held", after: "shared 8 | | D1/2=1 B1/2=8", hints: "D1/2",
	},
	{
		name: "to several that have room", before: "shared 9 | C1/3 D1/3 E1/3 F1/3 | A1/3=9 B1/3=-1", listening: "C D E F", do: releases("A1/3", ""),
		first: "handed", second: "not held", after: "shared 1 | F1/3 | B1/3=-1 C1/3=1 D1/3=1 E1/3=1", hints: "C1/3 D1/3 E1/3",
	},
	{name: "the last reader, to the writer", before: "shared 9 | B1 C1* | A1*=9", listening: "B C", do: releases("A1*", ""), first: "handed", second: "not held", after: "B1 1 | C1* |", hints: "B1"},
	{name: "not the last reader", before: "shared 9 | B1 C1* | A1*=9 D1*=9", listening: "B C", do: releases("A1*", ""), first: "freed", second: "not held", after: "shared 9 | B1 C1* | D1*=9"},
	{
		name: "the last lease, to another: a new phase has no number yet", before: "shared 9 #77 | B1/1 | A1/1=9", listening: "B", do: releases("A1/1", ""),
		first: "handed", second: "not held", after: "shared 1 | | B1/1=1", hints: "B1/1",
	},
	{
		name: "not the last lease: the phase keeps its number", before: "shared 9 #77 | B1/2 | A1/2=9 C1/2=8", listening: "B", do: releases("A1/2", ""),
		first: "handed", second: "not held", after: "shared 8 #77 | | B1/2=1 C1/2=8", hints: "B1/2",
	},
	{name: "rejoin, alone", before: "shared 9 | | A1/1=9", do: releases("A1/1", "A2/1"), first: "kept", second: "not held", after: "shared 10 | | A2/1=10"},
	{name: "rejoin behind another", before: "shared 9 | B1/1 | A1/1=9", listening: "B", do: releases("A1/1", "A2/1"), first: "handed", second: "not held", after: "shared 1 | A2/1 | B1/1=1", hints: "B1/1"},
	{name: "rejoin behind another, room for both", before: "shared 9 | B1/2 | A1/2=9", listening: "B", do: releases("A1/2", "A2/2"), first: "kept", second: "not held", after: "shared 10 | | B1/2=1 A2/2=10", hints: "B1/2"},
	{
		name: "rejoin behind a writer that has to wait", before: "shared 9 | B1 | A1*=9 C1*=9", listening: "B", do: releases("A1*", "A2*"),
		first: "handed", second: "not held", after: "shared 9 B1@1 | B1 A2* | C1*=9", hints: "B1",
	},
	{name: "shared, rejoins as exclusive, alone", before: "shared 9 | | A1*=9", do: releases("A1*", "A2"), first: "kept", second: "not held", after: "A2 10 | |"},
	{name: "shared, rejoins as exclusive beside another", before: "shared 9 | | A1*=9 B1*=5", do: releases("A1*", "A2"), first: "handed", second: "not held", after: "shared 5 | A2 | B1*=5"},
	{name: "a late rejoin: the token that rejoined is out already", before: "shared 30 | | A1/3=9 A2/3=30", listening: "A", do: releases("A1/3", "A2/3"), first: "kept", second: "not held", after: "shared 30 | | A2/3=30"},
	{
		name: "a late rejoin while others wait", before: "shared 30 | B1/2 C1 | A1/2=9 A2/2=30", listening: "A B C", do: releases("A1/2", "A2/2"),
		first: "kept", second: "not held", after: "shared 30 | C1 | B1/2=1 A2/2=30", hints: "B1/2",
	},
	{name: "no lease", before: "shared 9 | | B1*=9", do: releases("A1*", ""), first: "not held", after: "shared 9 | | B1*=9"},
	{name: "a lease that has ended: does not rejoin", before: "shared 9 | | A1*=-1 B1*=9", do: releases("A1*", "A2*"), first: "not held", after: "shared 9 | | A1*=-1 B1*=9"},
	{name: "a lease that has ended: its room goes to the queue", before: "shared 9 | C1/2 | A1/2=-1 B1/2=9", listening: "C", do: releases("A1/2", ""), first: "not held", after: "shared 9 | | C1/2=1 B1/2=9", hints: "C1/2"},
	{name: "the last lease, beside one that has ended", before: "shared 9 #77 | | A1*=9 B1*=-1", do: releases("A1*", ""), first: "freed", second: "not held", after: "- | |"},
	{name: "one of three", before: "shared 9 #77 | | A1*=7 B1*=9 C1*=8", do: releases("A1*", ""), first: "freed", second: "not held", after: "shared 9 #77 | | C1*=8 B1*=9"},
	{name: "all leases have ended", before: "shared 9 | C1 | A1/2=-1", listening: "C", do: releases("A1/2", ""), first: "not held", after: "C1 1 | |", hints: "C1"},
	{name: "leave the queue", before: "B1 10 | A1* C1 |", listening: "C", do: releases("A1*", ""), first: "not held", after: "B1 10 | C1 |"},
	{
		name: "a writer that leaves lets in the readers that it kept waiting", before: "shared 9 A1@1 | A1 C1* D1 | B1*=9", listening: "C D", do: releases("A1", ""),
		first: "not held", after: "shared 9 A1@1 | D1 | C1*=1 B1*=9", hints: "C1*",
	},
	{name: "leave with a permit that was just granted", before: "shared 1 | C1/1 | A1/1=1", listening: "C", do: releases("A1/1", ""), first: "handed", second: "not held", after: "shared 1 | | C1/1=1", hints: "C1/1"},
	{name: "leave while K is absent", before: "- | A1* B1* |", listening: "B", do: releases("A1*", ""), first: "not held", after: "- | B1* |"},
	{name: "a release never touches a foreign holder", before: "x! 10 | | A1*=9", do: releases("A1*", ""), first: "not held", after: "x! 10 | | A1*=9"},
}

var sharedRenewals = []sharedTransition{
	{name: "renew", before: "shared 9 | C1 | A1*=2 B1*=9", do: renews("A1*", 0), first: "held, 1 waiting", after: "shared 10 | C1 | B1*=9 A1*=10"},
	{name: "renew: leases that have ended are removed", before: "shared 9 | | C1*=-2 A1*=2", do: renews("A1*", 0), first: "held, 0 waiting", after: "shared 10 | | A1*=10"},
	{name: "renew brings back no lease", before: "shared 9 | | A1*=-1 B1*=9", do: renews("A1*", 0), first: "lost", after: "shared 9 | | A1*=-1 B1*=9"},
	{name: "renew creates no lease", do: renews("A1*", 0), first: "lost", after: "- | |"},
	{name: "renew without the marker", before: "- | | A1*=9", do: renews("A1*", 0), first: "lost", after: "- | | A1*=9"},
	{name: "renew beside a foreign client", before: "x! 10 | | A1*=9", do: renews("A1*", 0), first: "lost", after: "x! 10 | | A1*=9"},
	{name: "renew: never shorter", before: "shared 30 | | A1*=30", do: renews("A1*", 0), first: "held, 0 waiting", after: "shared 30 | | A1*=30"},
	{name: "renew with a number", before: "shared 9 | | A1*=3", do: renews("A1*", 4), first: "held, 0 waiting", after: "shared 10 #N | | A1*=10"},
	{name: "renew with the number of the phase", before: "shared 9 #77 | | A1*=3", do: renews("A1*", 4), first: "held, 0 waiting", after: "shared 10 #77 | | A1*=10"},
}

// exclusiveBesideShared are transitions of exclusive tokens that meet shared ones.
var exclusiveBesideShared = []sharedTransition{
	{name: "take, a reader is out", before: "shared 9 | | B1*=9", listening: "B", do: takes("A1"), first: "shared, 0", after: "shared 9 | | B1*=9"},
	{name: "ask, free, a reader is first: the reader gets K", before: "- | B1* |", listening: "B", do: asks("A1"), first: "held by B1*, 1", after: "B1* 1 | A1 |", hints: "B1* B1*"},
	{name: "ask, free, a dead writer and a reader", before: "- | C1 B1* |", listening: "B", do: asks("A1"), first: "held by B1*, 1", after: "B1* 1 | A1 |", hints: "B1* B1*"},
	{name: "release, a reader is first", before: "A1 9 | B1* C1* |", listening: "B C", do: releases("A1", ""), first: "handed", second: "not held", after: "B1* 1 | C1* |", hints: "B1*"},
	{name: "release and rejoin, a reader is first", before: "A1 9 | B1* |", listening: "B", do: releases("A1", "A2"), first: "handed", second: "not held", after: "B1* 1 | A2 |", hints: "B1*"},
	{name: "release, a writer is first", before: "A1 9 | C1 B1* |", listening: "C", do: releases("A1", ""), first: "handed", second: "not held", after: "C1 1 | B1* |", hints: "C1"},
	{
		name: "a reader that was handed K shares it with the readers that wait", before: "B1* 1 | C1* D1 E1* |", listening: "C D E", do: asks("B1*"),
		first: "granted, 1 waiting", after: "shared 10 | D1 | C1*=1 E1*=1 B1*=10", hints: "C1* E1*",
	},
	{
		name: "a permit that was handed K shares it in the order of the queue", before: "B1/2 1 | C1 D1/2 E1/2 F1/9 |", listening: "C D E F", do: asks("B1/2"),
		first: "granted, 3 waiting", after: "shared 10 | C1 E1/2 F1/9 | D1/2=1 B1/2=10", hints: "D1/2",
	},
	{name: "a reader that was handed K, beside a void set", before: "B1* 1 | | C1*=9", do: asks("B1*"), first: "granted, 0 waiting", after: "shared 10 | | B1*=10"},
	{name: "a reader that was handed K leaves", before: "B1* 1 | C1* D1 |", listening: "C D", do: releases("B1*", ""), first: "handed", second: "not held", after: "shared 1 | D1 | C1*=1", hints: "C1*"},
	{name: "a reader that was handed K leaves, to a writer", before: "B1* 1 | D1 C1* |", listening: "C D", do: releases("B1*", ""), first: "handed", second: "not held", after: "D1 1 | C1* |", hints: "D1"},
	{name: "ask, fresh, a reader is out: joins once", before: "shared 9 | | B1*=9", listening: "B", do: asks("A1", "fresh"), first: "shared, 9", after: "shared 9 A1@1 | A1 | B1*=9", hints: "B1* B1*"},
	{name: "confirm a hand-off from readers", before: "A1 1 | B1* |", listening: "B", do: asks("A1"), first: "granted, 1 waiting", after: "A1 10 | B1* |"},
	{name: "an attempt, a reader is out", before: "shared 9 | | B1*=9", do: begins("A1"), first: "shared, 9", after: "shared 9 | A1 | B1*=9"},
	{name: "an attempt, free, a reader is first", before: "- | B1* |", listening: "B", do: begins("A1"), first: "held by B1*, 1", after: "B1* 1 | A1 |", hints: "B1* B1*"},
	{name: "commit an attempt, a reader is first", before: "A1 9 | B1* C1 |", listening: "B C", do: commits("A1"), first: "handed", second: "not held", after: "B1* 1 | C1 |", hints: "B1*"},
	{name: "commit an attempt that has lost K to readers", before: "shared 9 | A1 C1 | B1*=9", listening: "C", do: commits("A1"), first: "not held", after: "shared 9 | C1 | B1*=9"},
}

func TestSharedTransitions(t *testing.T) {
	t.Parallel()
	storetest.OnEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		checkSharedTransitions(t, rdb, newStore(t, rdb).subscriber.Mode().(string))
	})
}

// Mode S is for clusters. Its scripts also run on a server without cluster mode.
func TestSharedTransitionsWithShardedChannels(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	server.Grant(storetest.ClusterRights()...)
	checkSharedTransitions(t, server.Client(t), "S")
}

func checkSharedTransitions(t *testing.T, rdb redis.UniversalClient, mode string) {
	t.Helper()
	for kind, tests := range map[string][]sharedTransition{
		"ask": sharedAsks, "brief ask": briefSharedAsks, "release": sharedReleases, "renew": sharedRenewals, "exclusive": exclusiveBesideShared,
	} {
		for _, test := range tests {
			for _, noWaiters := range []bool{false, true} { // a release then has the brief form
				if noWaiters && kind != "release" {
					continue
				}
				t.Run(fmt.Sprintf("%s: %s, NoWaiters %t", kind, test.name, noWaiters), func(t *testing.T) {
					s := newStore(t, rdb)
					s.setMode(mode)
					s.noWaiters = noWaiters
					test.check(t, rdb, s)
				})
			}
		}
	}
}

// One script grants at most 64 leases. The confirmations of those grant the others: in the
// order of the queue, and without a timer.
func TestOneScriptGrantsABoundedNumberOfLeases(t *testing.T) {
	t.Parallel()
	storetest.OnEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newStore(t, rdb)
		s.setMode("B") // all processes count as listening
		before := "A1* 1 | "
		for i := range 150 {
			before += fmt.Sprintf("B%d* ", i+1)
		}
		sharedState(before+"C1 |").put(t, rdb)
		for i, want := range []struct {
			name            string
			waiting, leases int
		}{{"A1*", 88, 64}, {"B1*", 24, 128}, {"B2*", 1, 151}, {"B3*", 1, 151}} {
			got, err := s.Enqueue(t.Context(), namedRequest(want.name))
			leases := rdb.ZRange(t.Context(), storetest.SharedName, 0, -1).Val()
			if err != nil || !got.Granted || got.Waiting != want.waiting || len(leases) != want.leases {
				t.Errorf("ask %d: %+v, %v, and %d leases are out", i, got, err, len(leases))
			}
			waiting := rdb.LRange(t.Context(), storetest.QueueName, 0, 0).Val()
			if next := fmt.Sprintf("B%d*", want.leases); want.waiting > 1 && !slices.Equal(waiting, []string{tokenOf(next)}) {
				t.Errorf("ask %d: the first of the queue is not %s", i, next)
			}
		}
	})
}
