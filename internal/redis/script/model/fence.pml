/* The fencing numbers of one lock. The claim: the numbers rise strictly from lease to lease.
 *
 * The server reserves numbers in blocks of at most BLOCK. last is the server's counter. clock is the server's time, in the
 * unit of the numbers. Usually a block begins after last and ends at clock. A block has one number if clock is not ahead of
 * last, or if the counter is absent. A lease may reserve its next block before it has used its block up. The counter may be
 * lost, or fall back to an earlier value. README.md lists the options.
 */
#ifndef LOSSES
#define LOSSES 2        /* how often the counter may be lost */
#endif
#define BLOCK 3
#define END 20          /* bound of the search, for clock and numbers */
#define STEP 5          /* how far the clock steps back */
#ifdef QUICK
#define FAILOVER 1      /* time until the counter has fallen back */
#else
#define FAILOVER BLOCK
#endif

byte clock = 1;
byte last;              /* the counter; 0 = absent */
byte former;            /* an earlier value of the counter */
byte issued;            /* the highest number that a holder has got */
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

/* Leases of one lock, one after another. Of two leases, only the later one hands out numbers. */
proctype Leases() {
  byte next, past;              /* the numbers left of the block: next <= number < past */
  byte coming, coming_past;     /* the next block; 0 = none */
  byte wanted;
end:
  do
  :: atomic { last + BLOCK < END && clock + BLOCK < END ->                      /* another lease begins */
       if :: wanted = 1 :: wanted = BLOCK fi;
       reserve(next, past, wanted); coming = 0; coming_past = 0 }
  :: atomic { last + BLOCK < END && clock + BLOCK < END && past > 0 && coming == 0 ->                    /* the lease is renewed */
       if :: wanted = 1 :: wanted = BLOCK fi;
       reserve(coming, coming_past, wanted) }
  :: atomic { next < past ->                                                    /* the process hands the lease to its next waiter */
       assert(next > issued); issued = next; next++ }
  :: atomic { coming > 0 && next == past ->                                     /* the reply of a renewal; it may be an old one */
       if
       :: coming_past > past -> next = greater(coming, past); past = coming_past
       :: else
       fi;
       coming = 0; coming_past = 0 }
  od
}

proctype Environment() {
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

init { atomic { run Leases(); run Environment() } }
