/* The native release: two commands of the server, DELIFEQ and LLEN, in place of a script. The claims: one holder at a time, and no
 * waiter is stranded.
 *
 * key and queue are what the server stores. Each command and each script is one atomic step. Other commands may come between DELIFEQ
 * and LLEN, and before the script that follows if a token waits. As in handoff.pml there is no clock: a key may expire whenever no
 * holder relies on it. README.md lists the claims and the options.
 */
#ifndef PROCESSES
#define PROCESSES 3
#endif
#ifndef EPISODES
#define EPISODES 1      /* leases of each process */
#endif
#ifndef LOSE
#define LOSE 0          /* native releases whose replies are lost, before or after they ran */
#endif
#ifndef CRASH
#define CRASH 0         /* processes that die under the lease, or between the commands of the release */
#endif
#ifndef EXPIRE
#define EXPIRE 0        /* holders that lose their lease, and release it later */
#endif
#ifndef REACH
#define REACH 0         /* the situation that must be reachable: its assertion has to fail */
#endif

byte lose = LOSE, crash = CRASH, expire = EXPIRE;

#define NONE 0
#define token(process, n) (1 + (process) * 4 + (n))
#define owner(t) (((t) - 1) / 4)

byte key = NONE;
chan queue = [8] of { byte };

bool holding[PROCESSES];  /* whether the process acts under the lock */
bool dead[PROCESSES];
byte hint[PROCESSES];     /* token of the last hint */
byte current[PROCESSES];  /* token of the episode */

hidden byte first;        /* used within one atomic step */

#define one_holder assert(holding[0] + holding[1] + holding[PROCESSES - 1] * (PROCESSES > 2) <= 1)
#define reached(situation) assert(REACH != situation)
#define BARGED 1          /* a take between DELIFEQ and the script */
#define GIVEN_ON 2        /* the script hands on a key that is free */

/* Gives the free key to the first of the queue whose process listens. */
inline pass() {
  key = NONE;
  do
  :: empty(queue) -> break
  :: nempty(queue) -> queue?first;
     if
     :: dead[owner(first)]
     :: else -> hint[owner(first)] = first; key = first; break
     fi
  od
}

inline leave_queue(t) {
  if :: queue??[eval(t)] -> queue??eval(t) :: else fi
}

inline release(t) {
  leave_queue(t);
  if
  :: key == t -> pass()
#ifndef KEEPFREE
  :: key == NONE -> if :: nempty(queue) -> reached(GIVEN_ON) :: empty(queue) fi; pass()
#endif
  :: else
  fi
}

#ifdef NOTIMER
#define timer false
#else
#define timer (key == NONE || key == T || !(queue??[eval(T)]))
#endif

/* Whether the key expires: its holder has lost it, or has died, or the token was granted to one that has. */
#define may_expire (key != NONE && (dead[owner(key)] || (current[owner(key)] != key)))

active [PROCESSES] proctype Process() {
  byte T, i = _pid, n = 0;
  bool freed, waits;
end_idle:
  do
  :: atomic { n < EPISODES -> T = token(i, n); n++; current[i] = T }
     if
     :: atomic { key == NONE ->                       /* SET NX */
          if :: nempty(queue) -> reached(BARGED) :: empty(queue) fi;
          key = T; holding[i] = true; one_holder }
     :: atomic { key != NONE -> skip };
        goto asking
     fi;
     goto held;
asking:
     atomic {
       if
       :: key == T -> leave_queue(T); holding[i] = true; one_holder; goto held
       :: key == NONE ->
          if :: queue??[eval(T)] :: else -> queue!T fi;
          first = NONE;
          do
          :: queue?first; if :: first == T -> break :: first != T && dead[owner(first)] :: else -> hint[owner(first)] = first; break fi
          od;
          key = first;
          if :: key == T -> holding[i] = true; one_holder; goto held :: else fi
       :: else ->
          if :: queue??[eval(T)] :: else -> queue!T fi
       fi
     };
     atomic { hint[i] == T || timer -> hint[i] = NONE };
     goto asking;
held:
     if
     :: true
     :: atomic { expire > 0 -> expire--; holding[i] = false; if :: key == T -> key = NONE :: else fi }
     :: atomic { crash > 0 -> crash--; holding[i] = false; dead[i] = true; goto gone }
     fi;
     holding[i] = false;
     freed = false; waits = false;
#ifdef LOOKFIRST
     atomic { waits = nempty(queue) };
#endif
     if
     :: atomic { lose > 0 -> lose--; goto script }    /* it never runs, and the second send is the script */
     :: atomic {
#ifdef ANYVALUE
          if :: key != NONE -> key = NONE; freed = true :: else fi
#else
          if :: key == T -> key = NONE; freed = true :: else fi
#endif
        }
     fi;
     if
     :: true
     :: atomic { crash > 0 -> crash--; dead[i] = true; goto gone }
     fi;
#if !defined(LOOKFIRST) && !defined(NOLOOK)
     atomic { waits = nempty(queue) };
#endif
     if
     :: atomic { lose > 0 -> lose--; goto script }    /* it ran, and its reply is lost */
     :: atomic { freed && !waits -> goto released }
     :: atomic { !freed || waits -> goto script }
     fi;
script:
     atomic { release(T) };
released:
     atomic { current[i] = NONE; T = NONE; freed = false; waits = false }
  od;
gone:
  current[i] = NONE
}

/* Keys that nobody relies on expire. A key of a waiter that was granted does not: its hint is on its way. */
active proctype Environment() {
end_expiry:
  do
  :: atomic { may_expire -> key = NONE }
  od
}
