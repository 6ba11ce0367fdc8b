// Package mutant tests the campaign: each mutant is one deliberate mistake in the lock. A
// campaign without violations is evidence only if it finds these mistakes.
//
// A mutant is a file that ends in .diff. Its first paragraph describes the mistake, and
// which locks have made it. Lines with a name and a colon say which faults show the
// mistake, on which deployment, and which checks find it. The rest is the change of the
// product:
//
//	A release deletes the key without checking its token.
//
//	faults: ^server-stands-still$
//	on: server
//	checks: ^mutual-exclusion$
//
//	--- internal/redis/script/free.lua
//	@@
//	-if redis.call('GET', KEYS[1]) == ARGV[1] then
//	+if true then
//
// Each @@ begins an edit: whole lines, which must be in the file exactly once. Lines with a
// leading space stay. The files of the product are never changed: the compiler gets an
// overlay.
package mutant
