/* An operator revokes leases of one lock. The claims: never more holders than permits, and only the lease that was seen ends.
 *
 * slot is what the server stores: the token of each lease, and how long the lease lives. An exclusive lock has one slot. take,
 * renew, release and revoke are scripts of the server; each is one atomic step. This model has a clock: with each tick, leases
 * and validities get shorter together. A process counts the validity of its lease from the sending of the command, and does not
 * act under a lease that is not valid. README.md lists the claims and the options.
 */
#ifndef PROCESSES
#define PROCESSES 2
#endif
#ifndef PERMITS
#define PERMITS 1       /* how many leases may be out at once */
#endif
#ifndef EPISODES
#define EPISODES 2      /* leases of each process */
#endif
#ifndef REVOKE
#define REVOKE 1        /* leases that an operator looks at and revokes later; each is another operator */
#endif
#ifndef LOSE
#define LOSE 0          /* lost commands or answers */
#endif
#ifndef LATE
#define LATE 0          /* commands that time out, and then run late or never */
#endif
#ifndef REACH
#define REACH 0         /* the situation that must be reachable: its assertion has to fail */
#endif
#ifndef TTL
#define TTL 3           /* ticks for which a lease lives after its last command */
#endif

byte lose = LOSE, late = LATE;

/* A token names one lease. */
#define NONE 0
#define token(process, n) (1 + (process) * 4 + (n))
#define tombstone(look) (100 + (look))  /* replaces the token of a lease that was revoked. It is the token of no process */
#define is_token(t) ((t) != NONE && (t) < 100)

mtype = { TAKE, RENEW, RELEASE, REVOKED, GRANTED, REFUSED };

/* The server. */
byte slot[2], left[2];
chan delayed = [1] of { mtype, byte, byte };    /* a delayed command: its kind, its token, and the look of a revoke */

/* The processes. */
byte valid[3];          /* ticks for which the process may act under its lease; 0 = it does not act */
byte credit[3];         /* ticks for which a granting answer will be valid that has not arrived yet */

/* The history. */
byte ended[3];          /* by look: the token of the lease that its revoke has ended */
bool refused[3];        /* by look: the operator has learned that it has ended none */

hidden mtype reply;     /* answer of the last script; used within one atomic step */
hidden byte s;          /* a slot; used within one atomic step */

/* The claims. */
#define within_permits assert((valid[0] > 0) + (valid[1] > 0) + (valid[2] > 0) <= PERMITS)
#define only_seen(look, seen) assert(ended[look] == seen)
#define refusal_is_true(look) assert(!(ended[look] != NONE && refused[look]))

/* The situations that must be reachable. */
#define TOLD 1          /* a holder learns from its renewal that its lease was revoked */
#define TOO_LATE 2      /* a revoke finds that another lease has the slot */
#define AGAIN 3         /* a revoke finds the tombstone of its earlier send */
#define reached(situation) assert(REACH != situation)

/* ---- the scripts ---- */

/* Sets s to the slot with the value t, or to PERMITS if there is none. */
inline find(t) {
  s = 0;
  do :: s < PERMITS && slot[s] != t -> s++ :: else -> break od
}

inline take(t) {
  find(t);
  if :: s == PERMITS -> find(NONE) :: else fi;
  if
  :: s < PERMITS -> slot[s] = t; left[s] = TTL; reply = GRANTED
  :: else -> reply = REFUSED
  fi
}

inline renew(t) {
  find(t);
  if
  :: s < PERMITS -> left[s] = TTL; reply = GRANTED
  :: else -> reply = REFUSED
  fi
}

inline release(t) {
  find(t);
  if :: s < PERMITS -> slot[s] = NONE; left[s] = 0 :: else fi
}

inline revoke_as(seen, look) {
  find(tombstone(look));
  if
  :: s < PERMITS -> reached(AGAIN); reply = REVOKED
  :: else ->
     find(seen);
#ifdef UNSEEN
     s = (is_token(slot[0]) -> 0 : PERMITS);
#endif
     if
     :: s < PERMITS ->
        ended[look] = slot[s]; only_seen(look, seen); refusal_is_true(look);
        slot[s] = tombstone(look);
#ifdef SHORT
        left[s] = 1;
#endif
#ifdef ENDLESS
        left[s] = 255;
#endif
#ifdef HANDOVER
        slot[s] = NONE; left[s] = 0;
#endif
        reply = REVOKED
     :: else ->
        if :: is_token(slot[0]) -> reached(TOO_LATE) :: else fi;
        reply = REFUSED
     fi
  fi
}

/* The outcome of a command is unknown: the command was lost or is delayed. */
inline lose_or_delay(command, t, look) {
  if
  :: lose > 0 -> lose--
  :: late > 0 && empty(delayed) -> late--; delayed!command,t,look
  fi
}

/* ---- a process ---- */

#define has_room (slot[0] == NONE || (PERMITS > 1 && slot[1] == NONE))

proctype Process(byte i) {
  byte T, n;
  mtype got;

idle:
  atomic { valid[i] = 0; credit[i] = 0; got = 0; T = NONE }
end_idle:
  atomic { n < EPISODES -> T = token(i, n); n++ };

asking:
  atomic { has_room || slot[0] == T || slot[1] == T -> credit[i] = TTL };
  if
  :: atomic { take(T); got = reply }
  :: atomic { lose > 0 -> lose--; take(T); got = 0 }
  :: atomic { lose_or_delay(TAKE, T, 0); got = 0 }
  fi;
  if
  :: atomic { got == GRANTED && credit[i] > 0 -> valid[i] = credit[i]; credit[i] = 0; got = 0; within_permits; goto held }
  :: atomic { got == GRANTED && credit[i] == 0 -> got = 0; goto releasing }
  :: atomic { got == REFUSED -> credit[i] = 0; got = 0; goto asking }
  :: atomic { got == 0 -> credit[i] = 0; goto releasing }
  fi;

held:
  if
  :: atomic { valid[i] > 0 -> credit[i] = TTL };
     if
     :: atomic { renew(T); got = reply }
     :: atomic { lose > 0 -> lose--; renew(T); got = 0 }
     :: atomic { lose_or_delay(RENEW, T, 0); got = 0 }
     fi;
     if
     :: atomic { got == GRANTED && valid[i] > 0 -> if :: credit[i] > valid[i] -> valid[i] = credit[i] :: else fi; credit[i] = 0; got = 0; goto held }
     :: atomic { got == REFUSED ->
          if :: valid[i] > 0 && (slot[0] >= 100 || slot[1] >= 100) -> reached(TOLD) :: else fi;
          goto idle }
     :: atomic { got == 0 && valid[i] > 0 -> credit[i] = 0; goto held }
     :: atomic { valid[i] == 0 -> goto releasing }
     fi
  :: goto releasing     /* the holder is done, or its lease is not valid any more */
  fi;

releasing:              /* T is obsolete from here on */
  atomic { valid[i] = 0; credit[i] = 0 };
  if
  :: atomic { release(T); goto idle }
  :: atomic { lose_or_delay(RELEASE, T, 0); goto idle }
  fi
}

/* ---- the environment ---- */

proctype Environment() {
  mtype command; byte t, look;
end:
  do
  :: atomic { left[0] + left[1] + valid[0] + valid[1] + valid[2] + credit[0] + credit[1] + credit[2] > 0 && left[0] != 255 ->   /* a tick */
       s = 0;
       do
       :: s < 2 && left[s] > 1 -> left[s]--; s++
       :: s < 2 && left[s] <= 1 -> left[s] = 0; slot[s] = NONE; s++
       :: s == 2 -> break
       od;
       s = 0;
       do
       :: s < 3 ->
          if :: valid[s] > 0 -> valid[s]-- :: else fi;
          if :: credit[s] > 0 -> credit[s]-- :: else fi;
          s++
       :: s == 3 -> break
       od }
  :: atomic { delayed?command,t,look ->                                         /* the delayed command runs */
       if
       :: command == TAKE -> take(t)
       :: command == RENEW -> renew(t)
       :: command == RELEASE -> release(t)
       :: command == REVOKED -> revoke_as(t, look)
       fi;
       command = 0; t = NONE; look = 0 }
  :: atomic { delayed?_,_,_ }                                                   /* or never runs */
  od
}

/* An operator looks at a lease, and revokes it later. Meanwhile the slot may change. */
proctype Operator(byte look) {
  byte seen;
  bool uncertain;       /* a send has no reply */

end:
  if
  :: atomic { is_token(slot[0]) -> seen = slot[0] }
  :: atomic { PERMITS > 1 && is_token(slot[1]) -> seen = slot[1] }
  fi;
sending:
  if
  :: atomic { revoke_as(seen, look);
       if
       :: reply == REVOKED
#ifdef SURE
       :: reply == REFUSED -> refused[look] = true; refusal_is_true(look)
#else
       :: reply == REFUSED && !uncertain -> refused[look] = true; refusal_is_true(look)
       :: reply == REFUSED && uncertain                                         /* the outcome is unknown */
#endif
       :: lose > 0 -> lose--; uncertain = true; goto unanswered
       fi;
       goto decided }
  :: atomic { lose_or_delay(REVOKED, seen, look); uncertain = true; goto unanswered }
  fi;
unanswered:
  if :: goto sending :: goto decided fi;
decided:
  skip
}

init {
  atomic {
    run Process(0);
    run Process(1);
#if PROCESSES > 2
    run Process(2);
#endif
    run Environment();
    run Operator(0);
#if REVOKE > 1
    run Operator(1);
#endif
#if REVOKE > 2
    run Operator(2);
#endif
  }
}
