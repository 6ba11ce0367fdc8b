/* The idempotency record of one lock: what was done stays done, and nothing runs beside it or after it.
 *
 * key and record are what the server stores; begin and finish are its scripts, each one indivisible step. Process is
 * the client's side of one lock in one process: requests with one idempotency key, one after the other, of which each
 * brings a token of its own. A request that finds the key taken goes away; how others wait is told in handoff.pml.
 * World is time and mishap. There are no clocks: a key may expire whenever nobody relies on it. README.md says what
 * is checked, and how.
 */

/* How much there is of everything; check.sh sets them. All interleavings within these bounds are searched. */
#ifndef PROCESSES
#define PROCESSES 2
#endif
#ifndef REQUESTS
#define REQUESTS 2      /* of each process */
#endif
#ifndef LOSE
#define LOSE 0          /* commands or answers that are lost */
#endif
#ifndef LATE
#define LATE 0          /* commands that are given up, and run later or never */
#endif
#ifndef CRASH
#define CRASH 0         /* processes that die within an attempt; their next request is one of their next life */
#endif
#ifndef FAIL
#define FAIL 0          /* attempts that end in an abort, though they could run */
#endif
#ifndef LAPSE
#define LAPSE 0         /* leases that end while the attempt runs, which goes on */
#endif
#ifndef DROP
#define DROP 0          /* losses of a record that holds no answer: by eviction, or because somebody resolves it */
#endif
#ifndef REACH
#define REACH 0         /* the situation that must be reachable: its assertion has to fail */
#endif

byte lose = LOSE, late = LATE, crash = CRASH, fail = FAIL, lapse = LAPSE, drop = DROP;

/* Tokens. One names one attempt, and stands for its answer. */
#define NONE 0
#define STALE 255                       /* instead of a token: its lease has expired */
#define token(process, n) (1 + (process) * 4 + (n))
#define undone(t) (100 + (t))           /* of the record: that token was aborted, after one that died */

mtype = { ABSENT, RUNNING, DONE, ABORTED, GRANTED, BUSY, REPLAY, INTERRUPTED, GONE, STORED, REFUSED, BEGIN, COMMIT, ABORT };

/* The server. */
byte key = NONE;
mtype record = ABSENT;
byte by;                /* token of the record */
byte kept;              /* its answer */
bool before;            /* attempts have died before that of the record: its number is not 1 */
chan behind = [1] of { mtype, byte, byte };     /* a command left behind: itself, token, answer */

/* The processes, as others see them. */
byte running[3];        /* token of the attempt that runs */
bool valid[3];          /* and whether its lease is */
byte coming[3];         /* token that a granting answer under way is about, or STALE */

/* What has happened. */
byte answer;            /* what was committed */
bool over[14];          /* tokens of which it is known that their attempt has ended */
bool fallen;            /* an attempt has died that ran, and its record was not lost since */

hidden mtype reply;     /* of the last script; scratch inside one atomic step */

/* What is claimed. */
#define exclusive assert(valid[0] + valid[1] + valid[2] <= 1)
#define alone(t) assert((!valid[0] || running[0] == t) && (!valid[1] || running[1] == t) && (!valid[2] || running[2] == t))
#define unanswered assert(answer == NONE)
#define answered(a) assert(answer == a)
#ifdef BLAME
#define died(t) assert((t) > 100 || !over[t])
#else
#define died(t) skip
#endif

#define known(told) assert(!fallen || (told))   /* who runs after an attempt that died can know of it */

/* What must be reachable. */
#define AGAIN 1
#define RESTORED 2
#define BLAMED 3
#define TOO_LATE 4
#define UNDONE 5
#define reached(situation) assert(REACH != situation)

/* ---- the scripts ---- */

inline leave(t) {
  if :: key == t -> key = NONE :: else fi
}

inline begin(t) {
  if
  :: (record == ABORTED && by == t) || (record == RUNNING && by == undone(t)) -> reached(TOO_LATE); leave(t); reply = GONE
  :: record == DONE -> answered(kept); leave(t); reply = REPLAY
#ifdef REJECT
  :: record == RUNNING && by != t && by != key -> reached(BLAMED); died(by); leave(t); reply = INTERRUPTED
#endif
  :: else ->
     if :: key == NONE -> key = t :: else fi;
     if
#ifndef NOLOCK
     :: key != t -> reply = BUSY
#endif
     :: else ->
        if
        :: record == RUNNING && by != t -> reached(AGAIN); before = true
        :: record == RUNNING && by == t
        :: record != RUNNING -> before = false
        fi;
        record = RUNNING; by = t; reply = GRANTED
     fi
  fi
}

inline finish(t, a, ending) {
  if
  :: record == RUNNING && by == undone(t) -> reply = (ending == ABORT -> STORED : REFUSED)     /* sent again */
  :: (record == RUNNING || record == DONE) && by != t && by != undone(t) -> reply = REFUSED
  :: (record == DONE || record == ABORTED) && by == t ->        /* sent again */
     reply = ((record == ABORTED) == (ending == ABORT) -> STORED : REFUSED)
  :: else ->                                                    /* ours, or there is none */
     if
     :: ending == ABORT ->
        if
#ifndef FORGET
        :: record == RUNNING && before -> reached(UNDONE); by = undone(t)
#endif
        :: else ->
#ifdef ERASE
           record = ABSENT; by = NONE
#else
           record = ABORTED; by = t
#endif
        fi;
        reply = STORED
#ifdef RESTORE
     :: ending == COMMIT ->
#else
     :: ending == COMMIT && record != RUNNING && key != NONE && key != t -> reply = REFUSED
     :: ending == COMMIT && (record == RUNNING || key == NONE || key == t) ->
#endif
        if :: record != RUNNING -> reached(RESTORED); alone(t) :: else fi;
        unanswered; answer = a;
        record = DONE; by = t; kept = a; reply = STORED
     fi
  fi;
  leave(t)
}

/* ---- a process ---- */

/* The outcome of a command stays unknown, because it was lost or left behind. */
inline mishap(command, t, a) {
  if
  :: lose > 0 -> lose--
  :: late > 0 && empty(behind) -> late--; behind!command,t,a
  fi
}

proctype Process(byte i) {
  byte T, A;            /* token of the attempt; its answer */
  byte requests;
  mtype ending;
  bool told;            /* that one has died before */

idle:
  atomic { T = NONE; A = NONE; ending = 0; told = false }
end_idle:
  atomic { requests < REQUESTS -> A = token(i, requests); requests++; T = A };

asking:
  if
  :: atomic { begin(T);
       if
       :: reply == GRANTED -> coming[i] = T; told = before; goto granted
       :: reply == BUSY -> if :: goto idle :: goto aborting fi
       :: reply != GRANTED && reply != BUSY -> goto idle
       :: lose > 0 -> lose--; goto unheard
       fi }
  :: atomic { mishap(BEGIN, T, A); goto unheard }
  fi;
unheard:
  if :: goto asking :: goto aborting fi;

granted:                /* the answer arrives: worth nothing if its lease, counted from the sending, is over */
  if
  :: atomic { coming[i] == STALE -> coming[i] = NONE; goto aborting }
  :: atomic { coming[i] != STALE -> coming[i] = NONE; running[i] = T; valid[i] = true; exclusive; unanswered; known(told) }
  :: atomic { crash > 0 -> crash--; coming[i] = NONE; goto idle }
  fi;

  if                    /* it runs */
  :: ending = COMMIT; goto finishing
  :: atomic { fail > 0 -> fail--; goto aborting }
  :: atomic { crash > 0 -> crash--; running[i] = NONE; valid[i] = false;
       if :: record == RUNNING && (by == T || before) -> fallen = true :: else fi;
       goto idle }
  fi;

aborting:
  ending = ABORT;
finishing:              /* T is dead from here on */
  if
  :: atomic { running[i] = NONE; valid[i] = false; finish(T, A, ending);
       if
       :: reply == STORED ->
          if :: ending == COMMIT -> answered(A) :: else fi;
          over[T] = true; goto idle
       :: reply == REFUSED -> goto idle
       :: lose > 0 -> lose--; goto unsure
       fi }
  :: atomic { mishap(ending, T, A); running[i] = NONE; valid[i] = false; goto unsure }
  fi;
unsure:                 /* sent again; or given up, and the outcome stays unknown */
  if
  :: goto finishing
  :: goto idle
#ifdef RETAKE
  :: ending == ABORT -> goto asking
#endif
#ifdef SAMETOKEN
  :: atomic { requests < REQUESTS -> A = token(i, requests); requests++; goto asking }     /* the lease is passed on here */
#endif
  fi
}

/* ---- the rest of the world ---- */

#define relied_on(t) ((valid[0] && running[0] == t) || (valid[1] && running[1] == t) || (valid[2] && running[2] == t))

proctype World() {
  mtype command; byte t, a;
end:
  do
  :: atomic { key != NONE && !relied_on(key) ->                                 /* expiry, or a release that leaves the record alone */
       if :: coming[0] == key -> coming[0] = STALE :: else fi;
       if :: coming[1] == key -> coming[1] = STALE :: else fi;
       if :: coming[2] == key -> coming[2] = STALE :: else fi;
       key = NONE }
  :: atomic { lapse > 0 && valid[0] -> lapse--; valid[0] = false }
  :: atomic { lapse > 0 && valid[1] -> lapse--; valid[1] = false }
  :: atomic { lapse > 0 && valid[2] -> lapse--; valid[2] = false }
  :: atomic { drop > 0 && (record == RUNNING || record == ABORTED) -> drop--; record = ABSENT; by = NONE; fallen = false }
  :: atomic { behind?command,t,a ->                                             /* it runs late */
       if
       :: command == BEGIN -> begin(t)
       :: command != BEGIN -> finish(t, a, command)
       fi;
       command = 0; t = NONE; a = NONE }
  :: atomic { behind?_,_,_ }                                                    /* or never */
  od
}

init {
  atomic {
    run Process(0);
    run Process(1);
#if PROCESSES > 2
    run Process(2);
#endif
    run World();
  }
}
