/* The fencing numbers of one lock: they rise strictly from lease to lease.
 *
 * Numbers are reserved in blocks of BLOCK: first = max(last + 1, clock), where
 * last is the server's counter and clock its time, counted in the unit of the
 * numbers. A lease may reserve the next block before its own is used up. The
 * counter may be lost.
 */
#ifndef LOSSES
#define LOSSES 2        /* losses of the counter */
#endif
#define BLOCK 3
#define END 32          /* of the search, for clock and numbers */
#define STEP 5          /* of the clock, back */

byte clock = 1;
byte last;              /* the counter; 0 = absent */
byte issued;            /* the highest number that was handed out */
byte losses = LOSSES;

inline reserve(first) {
#ifdef PLAIN
  first = last + 1;
#else
  first = (last + 1 > clock -> last + 1 : clock);
#endif
  last = first + BLOCK - 1
}

/* One lease after another; of two, only the later hands out numbers. */
proctype Leases() {
  byte block, next, used;       /* the first of its block and of the one after, 0 = none; numbers used of its block */
end:
  do
  :: atomic { last + BLOCK < END && clock + BLOCK < END ->                      /* granted to another */
       reserve(block); next = 0; used = 0 }
  :: atomic { last + BLOCK < END && clock + BLOCK < END && block > 0 && next == 0 -> reserve(next) }    /* renewed */
  :: atomic { block > 0 && used < BLOCK ->                                      /* passed on within the process */
       assert(block + used > issued); issued = block + used; used++ }
  :: atomic { next > 0 && used == BLOCK -> block = next; next = 0; used = 0 }
  od
}

/* A loss is harmless as long as the clock has passed the counter: blocks are taken more slowly than it runs. */
#ifdef LAG
#define harmless true
#else
#define harmless (clock > last)
#endif

proctype World() {
  bool back;
end:
  do
  :: atomic { clock < END -> clock++ }
  :: atomic { losses > 0 && last > 0 && harmless -> losses--; last = 0 }
#ifdef BACK
  :: atomic { !back && clock > STEP -> back = true; clock = clock - STEP }
#endif
  od
}

init { atomic { run Leases(); run World() } }
