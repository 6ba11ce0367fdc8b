/* The fencing numbers of one lock: they rise strictly from lease to lease.
 *
 * Numbers are reserved in blocks of BLOCK at most. last is the server's counter and clock its time, counted in the unit of
 * the numbers. A block ends at the clock's time, and begins behind last. It has one number where the clock is not ahead of
 * last, and where the counter is not there. A lease may reserve the next block before its own is used up. The counter may
 * be lost, or fall back to a former value.
 */
#ifndef LOSSES
#define LOSSES 2        /* losses of the counter */
#endif
#define BLOCK 3
#define END 20          /* of the search, for clock and numbers */
#define STEP 5          /* of the clock, back */
#ifdef QUICK
#define FAILOVER 1      /* how long it takes until the counter has fallen back */
#else
#define FAILOVER BLOCK
#endif

byte clock = 1;
byte last;              /* the counter; 0 = absent */
byte former;            /* a value that the counter has had */
byte issued;            /* the highest number that was handed out */
byte losses = LOSSES;

#define lesser(a, b) ((a) < (b) -> (a) : (b))
#define greater(a, b) ((a) > (b) -> (a) : (b))

inline reserve(first, past, wanted) {
#if defined(PLAIN)
  first = last + 1; past = first + wanted;
#elif defined(AHEAD)
  first = greater(last + 1, clock); past = first + wanted;
#else
  if
#ifndef WHOLE
  :: last == 0 -> first = clock
#endif
  :: last >= clock -> first = last + 1
  :: else -> first = clock + 1 - lesser(wanted, clock - last)
  fi;
  past = greater(clock, first) + 1;
#endif
  last = past - 1;
  clock++               /* a command takes time */
}

/* One lease after another; of two, only the later hands out numbers. */
proctype Leases() {
  byte next, past;              /* the numbers that are left of its block: from next up to past, without past */
  byte coming, coming_past;     /* those of the block after, 0 = none */
  byte wanted;
end:
  do
  :: atomic { last + BLOCK < END && clock + BLOCK < END ->                      /* granted to another */
       if :: wanted = 1 :: wanted = BLOCK fi;
       reserve(next, past, wanted); coming = 0; coming_past = 0 }
  :: atomic { last + BLOCK < END && clock + BLOCK < END && past > 0 && coming == 0 ->                    /* renewed */
       if :: wanted = 1 :: wanted = BLOCK fi;
       reserve(coming, coming_past, wanted) }
  :: atomic { next < past ->                                                    /* passed on within the process */
       assert(next > issued); issued = next; next++ }
  :: atomic { coming > 0 && next == past ->                                     /* the reply; it may be an old one */
       if
       :: coming_past > past -> next = greater(coming, past); past = coming_past
       :: else
       fi;
       coming = 0; coming_past = 0 }
  od
}

proctype World() {
  bool back;
end:
  do
  :: atomic { clock < END -> clock++ }
  :: atomic { losses > 0 && last > 0 -> losses--; last = 0 }
#ifdef ROLLBACK
  :: atomic { last > 0 -> former = last }
  :: atomic { losses > 0 && former > 0 && clock + FAILOVER < END -> losses--; last = former; clock = clock + FAILOVER }
#endif
#ifdef BACK
  :: atomic { !back && clock > STEP -> back = true; clock = clock - STEP }
#endif
  od
}

init { atomic { run Leases(); run World() } }
