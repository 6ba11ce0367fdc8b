/* The idempotency record of one lock. The claims: a stored answer stays, and no request runs beside it or after it.
 *
 * key and record are what the server stores. begin and finish are scripts of the server; each is one atomic step. Process
 * is the client side of one lock in one process. It makes requests with one idempotency key, one after another, and each
 * request has a token of its own. A request that finds the key taken gives up; handoff.pml models requests that wait.
 * Environment expires keys, loses data, and runs delayed commands. The model has no clock: a key may expire whenever no
 * holder relies on it. README.md lists the claims and the options.
 */

/* The bounds of the search; rows.txt sets them. Spin searches all interleavings within these bounds. */
#ifndef PROCESSES
#define PROCESSES 2
#endif
#ifndef REQUESTS
#define REQUESTS 2      /* requests of each process */
#endif
#ifndef LOSE
#define LOSE 0          /* lost commands or answers */
#endif
#ifndef LATE
#define LATE 0          /* commands that time out, and then run late or never */
#endif
#ifndef CRASH
#define CRASH 0         /* processes that die within an attempt; the next request belongs to the next life of the process */
#endif
#ifndef FAIL
#define FAIL 0          /* attempts that could run and end in an abort */
#endif
#ifndef EXPIRE
#define EXPIRE 0        /* leases that end while the attempt goes on */
#endif
#ifndef DROP
#define DROP 0          /* losses of a record without an answer, by eviction */
#endif
#ifndef RESOLVE
#define RESOLVE 0       /* looks of an operator at an attempt that seems to have died; the operator may resolve it later */
#endif
#ifndef REACH
#define REACH 0         /* the situation that must be reachable: its assertion has to fail */
#endif

byte lose = LOSE, late = LATE, crash = CRASH, fail = FAIL, expire = EXPIRE, drop = DROP, resolve = RESOLVE;

/* A token names one attempt, and stands for its answer. */
#define NONE 0
#define STALE 255                       /* replaces a token after its lease expired */
#define token(process, n) (1 + (process) * 4 + (n))
#define resolved(t) (50 + (t))          /* in the record, instead of the token: an operator has said that this attempt was done */
#define aborted_after(t) (100 + (t))    /* in the record: the attempt of this token was aborted after an earlier attempt had died */
#define BY_HAND 200                     /* the answer of an operator */
#define bit(t) (1 << (t))

mtype = { ABSENT, RUNNING, DONE, ABORTED, GRANTED, BUSY, REPLAY, INTERRUPTED, GONE, STORED, REFUSED, BEGIN, COMMIT, ABORT,
  FORGET, ANSWER };

/* The server. */
byte key = NONE;
mtype record = ABSENT;
byte by;                /* token of the record */
byte stored;            /* answer of the record */
#ifdef REPORT
byte noted;             /* the record notes that the unknown outcome of this token was reported */
bool reported_interrupted[14];      /* history: tokens of attempts whose unknown outcome an observer has received */
#endif
short forgotten;        /* the record names the attempts that an operator has forgotten: a bit for each token */
bool earlier_died;      /* earlier attempts of this record have died: the number of its attempt is not 1 */
chan delayed = [1] of { mtype, byte, byte };    /* a delayed command: its kind, token and answer */

/* The state of the processes that other parts of the model read. */
byte running[3];        /* token of the running attempt */
bool valid[3];          /* whether the lease of the running attempt is valid */
byte incoming[3];       /* token of a granting answer that has not arrived yet, or STALE */

/* The history. */
byte answer;            /* the committed answer */
bool ended[14];         /* tokens of attempts that are known to have ended */
bool interrupted;       /* an attempt has died while it ran, and its record was not lost since */
short undone;           /* the attempts that an operator has forgotten since the record was lost: a bit for each token */
#if RESOLVE > 0
bool operator_ended[RESOLVE];   /* by look: the operator's resolution has taken effect */
bool refused[RESOLVE];          /* by look: the operator has learned that it has not */
#endif

hidden mtype reply;     /* answer of the last script; used within one atomic step */
hidden byte unreported; /* the same: token of the attempt that died, if the record does not note a report */

/* The claims. */
#define one_runner assert(valid[0] + valid[1] + valid[2] <= 1)
#define runs_alone(t) assert((!valid[0] || running[0] == t) && (!valid[1] || running[1] == t) && (!valid[2] || running[2] == t))
#define no_answer_yet assert(answer == NONE)
#define same_answer(a) assert(answer == a)
#define no_lease assert(!valid[0] && !valid[1] && !valid[2])
#ifdef CHECKDIED
#define check_died(t) assert((t) > 100 || !ended[t])
#else
#define check_died(t) skip
#endif

#define check_known(reported) assert(!interrupted || (reported)) /* an attempt that runs after one that died can know of it */

/* A resolution that is refused has not taken effect, and never will. */
#define check_refused(look) assert(!(operator_ended[look] && refused[look]))

/* Once an operator has said that an attempt was not done, its late commit is refused. */
#define not_answered(t) assert(answer == NONE && !(undone & bit(t)))

/* The situations that must be reachable. */
#define AGAIN 1
#define RESTORED 2
#define DIED 3
#define TOO_LATE 4
#define ABORTED_AFTER 5
#define RESOLVED_LATE 6
#define FORGOTTEN_LATE 7
#define reached(situation) assert(REACH != situation)

/* A copy that finds an attempt that died reports it, unless the record notes that one has. A note follows its report. */
#ifdef REPORT
#define note_report check_note; unreported = (noted == by -> NONE : by); note_first
#define check_note assert(noted != by || reported_interrupted[by])
#ifdef NOTEFIRST
#define note_first noted = by
#else
#define note_first skip
#endif
#else
#define note_report skip
#endif

/* ---- the scripts ---- */

inline leave(t) {
  if :: key == t -> key = NONE :: else fi
}

inline begin(t) {
  if
  :: (record == ABORTED && by == t) || ((record == RUNNING || record == ABORTED) && by == aborted_after(t)) -> reached(TOO_LATE); leave(t); reply = GONE
  :: record == DONE -> same_answer(stored); leave(t); reply = REPLAY
#ifdef REJECT
  :: record == RUNNING && by != t && by != key -> reached(DIED); check_died(by); leave(t); reply = INTERRUPTED; note_report
#endif
  :: else ->
     if :: key == NONE -> key = t :: else fi;
     if
#ifndef NOLOCK
     :: key != t -> reply = BUSY
#endif
     :: else ->
        if
        :: record == RUNNING && by != t -> reached(AGAIN); earlier_died = true
        :: record == RUNNING && by == t
        :: record != RUNNING -> earlier_died = false
        fi;
        record = RUNNING; by = t; reply = GRANTED
     fi
  fi
}

#define is_forgotten(t, ending) (ending == COMMIT && (forgotten & bit(t)))

inline finish(t, a, ending) {
  if
  :: (record == RUNNING || record == ABORTED) && by == aborted_after(t) -> reply = (ending == ABORT -> STORED : REFUSED) /* the finish was sent again */
  :: !is_forgotten(t, ending) && (record == RUNNING || record == DONE) && by != t && by != aborted_after(t) ->
     if :: ending == COMMIT && by == resolved(t) -> reached(RESOLVED_LATE) :: else fi;
     reply = REFUSED
  :: is_forgotten(t, ending) -> reached(FORGOTTEN_LATE); reply = REFUSED
  :: !is_forgotten(t, ending) && (record == DONE || record == ABORTED) && by == t ->        /* the finish was sent again */
     reply = ((record == ABORTED) == (ending == ABORT) -> STORED : REFUSED)
  :: else ->                                                    /* the record is of this attempt, or absent */
     if
     :: ending == ABORT ->
        if
#ifndef HIDEDIED
        :: record == RUNNING && earlier_died -> reached(ABORTED_AFTER); by = aborted_after(t)
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
        if :: record != RUNNING -> reached(RESTORED); runs_alone(t) :: else fi;
        not_answered(t); answer = a;
        record = DONE; by = t; stored = a; reply = STORED
     fi
  fi;
  leave(t)
}

#ifdef UNSEEN
#define is_seen(seen) true
#else
#define is_seen(seen) (by == seen)
#endif
#ifdef ANYWAY
#define is_free true
#else
#define is_free (key != by)
#endif

/* how is FORGET to forget the attempt, and ANSWER to answer the request. */
inline resolve_as(seen, how, look) {
  if
  :: record == RUNNING && is_seen(seen) && is_free ->
     no_lease; operator_ended[look] = true; check_refused(look);
     if
     :: how == FORGET ->
        if :: by == seen -> interrupted = false :: else fi;     /* the operator knows what only this attempt did */
        record = ABORTED;
        if
        :: by < 50 ->
           undone = undone | bit(by);
#ifdef LASTMARK
           forgotten = 0;
#endif
#ifndef NOMARK
           forgotten = forgotten | bit(by)
#endif
        :: else                                                 /* an attempt that died before it; the record does not name that */
        fi
     :: how == ANSWER ->
        no_answer_yet; answer = BY_HAND;
        record = DONE; stored = BY_HAND;
#ifndef NOTOMBSTONE
        by = resolved(seen)
#endif
     fi;
     reply = STORED
  :: else ->
     if
     :: record == ABSENT || record == ABORTED -> reply = GONE
     :: record == RUNNING && by == seen -> reply = BUSY
     :: how == ANSWER && record == DONE && by == resolved(seen) -> reply = STORED       /* it was sent again */
     :: else -> reply = REFUSED
     fi
  fi
}

/* What the operator gets if the reply to another send is missing: the reply, or STORED. It is 0 if the outcome is unknown. */
#ifdef SURE
#define decode_resend(how) skip
#else
#define decode_resend(how) \
  if \
  :: how == FORGET && reply == GONE -> reply = STORED \
  :: reply == STORED \
  :: else -> reply = 0 \
  fi
#endif

/* ---- a process ---- */

/* The outcome of a command is unknown: the command was lost or is delayed. */
inline lose_or_delay(command, t, a) {
  if
  :: lose > 0 -> lose--
  :: late > 0 && empty(delayed) -> late--; delayed!command,t,a
  fi
}

proctype Process(byte i) {
  byte T, A;            /* token of the attempt; its answer */
  byte requests;
  mtype ending;
#ifdef REPORT
  byte dead;            /* token of the attempt that died, to be reported */
#endif
  bool reported;        /* the grant said that an earlier attempt has died */

idle:
  atomic { T = NONE; A = NONE; ending = 0; reported = false }
end_idle:
  atomic { requests < REQUESTS -> A = token(i, requests); requests++; T = A };

asking:
  if
  :: atomic { begin(T);
       if
       :: reply == GRANTED -> incoming[i] = T; reported = earlier_died; goto granted
       :: reply == BUSY -> if :: goto idle :: goto aborting fi
#ifdef REPORT
       :: reply == INTERRUPTED && unreported != NONE -> dead = unreported; goto reporting
       :: reply == INTERRUPTED && unreported == NONE -> goto idle
       :: reply != GRANTED && reply != BUSY && reply != INTERRUPTED -> goto idle
#else
       :: reply != GRANTED && reply != BUSY -> goto idle
#endif
       :: lose > 0 -> lose--; goto unanswered_begin
       fi }
  :: atomic { lose_or_delay(BEGIN, T, A); goto unanswered_begin }
  fi;
unanswered_begin:
  if :: goto asking :: goto aborting fi;

granted:                /* the answer arrives; it counts only if the lease, counted from the sending of the command, is still valid */
  if
  :: atomic { incoming[i] == STALE -> incoming[i] = NONE; goto aborting }
  :: atomic { incoming[i] != STALE -> incoming[i] = NONE; running[i] = T; valid[i] = true; one_runner; no_answer_yet; check_known(reported) }
  :: atomic { crash > 0 -> crash--; incoming[i] = NONE; goto idle }
  fi;

  if                    /* the attempt runs */
  :: ending = COMMIT; goto finishing
  :: atomic { fail > 0 -> fail--; goto aborting }
  :: atomic { crash > 0 -> crash--; running[i] = NONE; valid[i] = false;
       if :: record == RUNNING && (by == T || earlier_died) -> interrupted = true :: else fi;
       goto idle }
  fi;

aborting:
  ending = ABORT;
finishing:              /* T is obsolete from here on */
  if
  :: atomic { running[i] = NONE; valid[i] = false; finish(T, A, ending);
       if
       :: reply == STORED ->
          if :: ending == COMMIT -> same_answer(A) :: else fi;
          ended[T] = true; goto idle
       :: reply == REFUSED -> goto idle
       :: lose > 0 -> lose--; goto unknown
       fi }
  :: atomic { lose_or_delay(ending, T, A); running[i] = NONE; valid[i] = false; goto unknown }
  fi;
unknown:                /* sends the finish again; or gives up, and the outcome stays unknown */
  if
  :: goto finishing
  :: goto idle
#ifdef RETAKE
  :: ending == ABORT -> goto asking
#endif
#ifdef SAMETOKEN
  :: atomic { requests < REQUESTS -> A = token(i, requests); requests++; goto asking }     /* the lease is handed to the next request */
#endif
  fi;
#ifdef REPORT
reporting:              /* the observer receives the event, and then the note is sent; the process may die before either */
  if
  :: reported_interrupted[dead] = true
  :: atomic { crash > 0 -> crash--; dead = NONE; goto idle }
  fi;
  if
  :: atomic { if :: record == RUNNING && by == dead -> noted = dead :: else fi; dead = NONE; goto idle }
  :: atomic { lose > 0 -> lose--; dead = NONE; goto idle }
  fi
#endif
}

/* ---- the environment ---- */

#define is_in_use(t) ((valid[0] && running[0] == t) || (valid[1] && running[1] == t) || (valid[2] && running[2] == t))

proctype Environment() {
  mtype command; byte t, a;
end:
  do
  :: atomic { key != NONE && !is_in_use(key) ->                                 /* the key expires, or a release removes it and leaves the record */
       if :: incoming[0] == key -> incoming[0] = STALE :: else fi;
       if :: incoming[1] == key -> incoming[1] = STALE :: else fi;
       if :: incoming[2] == key -> incoming[2] = STALE :: else fi;
       key = NONE }
  :: atomic { expire > 0 && valid[0] -> expire--; valid[0] = false }
  :: atomic { expire > 0 && valid[1] -> expire--; valid[1] = false }
  :: atomic { expire > 0 && valid[2] -> expire--; valid[2] = false }
  :: atomic { drop > 0 && (record == RUNNING || record == ABORTED) -> drop--; record = ABSENT; by = NONE; interrupted = false; forgotten = 0; undone = 0 }
  :: atomic { delayed?command,t,a ->                                            /* the delayed command runs */
       if
       :: command == BEGIN -> begin(t)
       :: command == COMMIT || command == ABORT -> finish(t, a, command)
#if RESOLVE > 0
       :: command == FORGET || command == ANSWER -> resolve_as(t, command, a)
#endif
       fi;
       command = 0; t = NONE; a = NONE }
  :: atomic { delayed?_,_,_ }                                                   /* or never runs */
  od
}

#if RESOLVE > 0
/* An operator looks at an attempt, finds out what it did, and resolves it. Meanwhile the record may change. */
proctype Operator() {
  byte seen; mtype how;
  bool uncertain;       /* a send has no reply */
end:
  do
  :: atomic { resolve > 0 && record == RUNNING -> resolve--; seen = by };
     if :: how = FORGET :: how = ANSWER fi;
sending:
     if
     :: atomic { resolve_as(seen, how, resolve);
          if
          :: true ->
             if :: uncertain -> decode_resend(how) :: else fi;
             if
             :: reply == 0 || reply == STORED
             :: else -> refused[resolve] = true; check_refused(resolve)
             fi;
             goto decided
          :: lose > 0 -> lose--
          fi;
          uncertain = true; goto unanswered }
     :: atomic { lose_or_delay(how, seen, resolve); uncertain = true; goto unanswered }
     fi;
unanswered:
     if :: goto sending :: goto decided fi;
decided:
     atomic { seen = NONE; how = 0; uncertain = false }
  od
}
#endif

init {
  atomic {
    run Process(0);
    run Process(1);
#if PROCESSES > 2
    run Process(2);
#endif
    run Environment();
#if RESOLVE > 0
    run Operator();
#endif
  }
}
