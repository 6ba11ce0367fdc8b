// Package mutant is the campaign's trial: mistakes that a lock like this one can
// have, made on purpose, one at a time. A campaign that finds nothing says
// something only if it would have found each of these.
//
// A mutant is a file that ends in .diff. Its first paragraph says what the mistake
// is, and who has made it; lines with a name and a colon say where it shows, and which
// checks find it; and the rest is what to change in the product:
//
//	A release deletes the key without a look at its token.
//
//	faults: ^server-stands-still$
//	on: server
//	checks: ^believed$
//
//	--- internal/redis/script/free.lua
//	@@
//	-if redis.call('GET', KEYS[1]) == ARGV[1] then
//	+if true then
//
// Each @@ begins an edit: whole lines, which must stand in the file exactly once.
// Those with a space in front stay. The product's files are never touched: the
// compiler is given the changed ones in their place.
package mutant
