/* A holder hands its lease over to another process by a ticket. The claims: never two holders, a ticket is good for one lease at
 * most, fencing numbers rise, and the key gets free although the ticket is lost.
 *
 * slot is what the server stores: the token of the lease, or of the ticket, and how long it lives. take, renew, release, handover
 * and accept are scripts of the server; each is one atomic step. This model has the clock of revoke.pml. Process 0 is the service
 * that hands its lease over, processes 1 and 2 are workers that get its job, and process 3 is another one that wants the lock.
 * README.md lists the claims and the options.
 */
#ifndef EPISODES
#define EPISODES 1      /* leases of process 3 */
#endif
#ifndef COPY
#define COPY 0          /* 1: the job is delivered to both workers */
#endif
#ifndef CRASH
#define CRASH 0         /* processes that die: the service before it stores the job, or a worker under the lease */
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
#ifndef GRACE
#define GRACE 2         /* ticks for which a ticket lives */
#endif

byte lose = LOSE, late = LATE, crash = CRASH;

/* A token names one lease, and TICKET the time between two leases. It is the token of no process. */
#define NONE 0
#define token(process, n) (1 + (process) * 8 + (n))
#define process_of(t) (((t) - 1) / 8)
#define TICKET 100
#define SERVICE 0
#define OTHER 3

mtype = { TAKE, RENEW, RELEASE, HANDOVER, ACCEPT, GRANTED, REFUSED };

/* The server. */
byte slot, left, counter;
chan delayed = [1] of { mtype, byte };  /* a delayed command, and its token */

/* The processes. */
byte valid[4];          /* ticks for which the process may act under its lease; 0 = it does not act */
byte credit[4];         /* ticks for which a granting answer will be valid that has not arrived yet */
chan job = [2] of { byte };

/* The history. */
byte issued;            /* the highest fencing number under which a process has acted */
byte takers;            /* how many processes have acted by the ticket */
bool ended[3];          /* by worker: its command has ended the ticket */
bool refused[3];        /* by worker: it has learned that it has not */

hidden mtype reply;     /* answer of the last script; used within one atomic step */
hidden byte number;     /* its fencing number */
hidden byte p;          /* a process; used within one atomic step */

/* The claims. */
#define one_holder assert((valid[0] > 0) + (valid[1] > 0) + (valid[2] > 0) + (valid[3] > 0) <= 1)
#define once(i) assert(valid[i] == 0 || takers == 1)
#define rises(m) assert(m>issued)
#define refusal_is_true(i) assert(!(ended[i] && refused[i]))
#define not_by_itself(i) assert(!(ended[i] && slot != NONE && process_of(slot) == i))

/* The situations that must be reachable. */
#define AGAIN 1         /* an accept finds the token of its earlier send */
#define TOO_LATE 2      /* an accept comes after the grace, and another process has the lock */
#define PHANTOM 3       /* a late handover leaves a ticket that nobody gets */
#define reached(situation) assert(REACH != situation)

/* ---- the scripts ---- */

inline grant(t) { slot = t; left = TTL; counter++; number = counter; reply = GRANTED }

inline take(t) {
  if
  :: slot == NONE || slot == t -> grant(t)
  :: else -> reply = REFUSED
  fi
}

inline renew(t) {
  if
  :: slot == t -> if :: left < TTL -> left = TTL :: else fi; reply = GRANTED
  :: else -> reply = REFUSED
  fi
}

inline release(t) {
  if :: slot == t -> slot = NONE; left = 0 :: else fi
}

inline handover(t) {
  if
  :: slot == t || slot == TICKET ->
     slot = TICKET;
#ifdef ENDLESS
     left = 255;
#else
     left = GRACE;
#endif
     reply = GRANTED
  :: else -> reply = REFUSED
  fi
}

inline accept(t) {
  if
#ifdef UNCHECKED
  :: slot == TICKET || slot == t || slot == NONE ->
#else
  :: slot == TICKET || slot == t ->
#endif
     if
     :: slot == t -> reached(AGAIN)
     :: else -> ended[process_of(t)] = true; refusal_is_true(process_of(t))
     fi;
     grant(t);
#ifdef SAMEFENCE
     counter--; number = counter;
#endif
#ifdef KEEPTICKET
     slot = TICKET;
#endif
     skip
  :: else ->
     if :: slot != NONE && process_of(slot) == OTHER -> reached(TOO_LATE) :: else fi;
     reply = REFUSED
  fi
}

inline lose_or_delay(command, t) {
  if
  :: lose > 0 -> lose--
  :: late > 0 && empty(delayed) -> late--; delayed!command,t
  fi
}

/* ---- the processes ---- */

/* A granting answer with the number m has arrived in time. */
inline act(i) { valid[i] = credit[i]; credit[i] = 0; one_holder; rises(m); issued = m; m = 0 }

proctype Service() {
  byte m;
  mtype got;

asking:
  atomic { slot == NONE -> credit[SERVICE] = TTL };
  if
  :: atomic { take(token(SERVICE, 0)); got = reply; m = number }
  fi;
  if
  :: atomic { got == GRANTED && credit[SERVICE] > 0 -> act(SERVICE); got = 0; goto held }
  :: atomic { got == REFUSED || credit[SERVICE] == 0 -> credit[SERVICE] = 0; got = 0; goto releasing }
  fi;

held:
  if
  :: atomic { valid[SERVICE] > 0 && late > 0 && empty(delayed) -> late--; delayed!RENEW,token(SERVICE, 0); goto held }
  :: atomic { valid[SERVICE] > 0 ->
#ifndef STILLVALID
       valid[SERVICE] = 0;              /* before the command leaves */
#endif
       goto sending }
  :: goto releasing
  fi;

sending:
  if
  :: atomic { handover(token(SERVICE, 0)); got = reply }
  :: atomic { lose > 0 -> lose--; handover(token(SERVICE, 0)); got = 0 }
  :: atomic { lose_or_delay(HANDOVER, token(SERVICE, 0)); got = 0 }
  fi;
  if
  :: atomic { got == GRANTED -> valid[SERVICE] = 0; got = 0; goto delivering }
  :: atomic { got == REFUSED -> valid[SERVICE] = 0; got = 0; goto over }
  :: atomic { got == 0 -> goto sending }
  :: atomic { got == 0 -> goto releasing }
  fi;

delivering:
  if
  :: atomic { job!TICKET;
#if COPY > 0
       job!TICKET;
#endif
       goto over }
  :: atomic { crash > 0 -> crash--; goto over }
  fi;

releasing:              /* the token and the ticket are obsolete from here on */
  atomic { valid[SERVICE] = 0; credit[SERVICE] = 0 };
  if
  :: atomic { release(token(SERVICE, 0)) }
  :: atomic { lose_or_delay(RELEASE, token(SERVICE, 0)) }
  fi;
  if
  :: atomic { release(TICKET) }
  :: atomic { lose_or_delay(RELEASE, TICKET) }
  fi;
over:
  skip
}

proctype Worker(byte i) {
  byte T, n, m;
  mtype got;

end_idle:
  atomic { job?_ -> T = token(i, 0) };
asking:
  atomic { credit[i] = TTL };
  if
  :: atomic { accept(T); got = reply; m = number;
       if :: got == REFUSED -> not_by_itself(i) :: else fi }
  :: atomic { lose > 0 -> lose--; accept(T); got = 0 }
  :: atomic { lose_or_delay(ACCEPT, T); got = 0 }
  fi;
  if
#ifdef REPLYTIME
  :: atomic { got == GRANTED -> credit[i] = TTL; takers++; act(i); once(i); got = 0; goto held }
#endif
  :: atomic { got == GRANTED && credit[i] > 0 -> takers++; act(i); once(i); got = 0; goto held }
  :: atomic { got == GRANTED && credit[i] == 0 -> got = 0; goto releasing }
  :: atomic { got == REFUSED -> refused[i] = true; credit[i] = 0; got = 0; goto over }
  :: atomic { got == 0 ->
#ifdef FRESH
       n++; T = token(i, n);
#endif
       goto asking }
  :: atomic { got == 0 -> goto releasing }
  fi;

held:
  if
  :: atomic { valid[i] > 0 -> credit[i] = TTL };
     if
     :: atomic { renew(T); got = reply;
          if :: got == GRANTED && valid[i] > 0 && credit[i] > valid[i] -> valid[i] = credit[i] :: else fi }
     :: atomic { lose_or_delay(RENEW, T); got = 0 }
     fi;
     atomic { credit[i] = 0; got = 0; goto releasing }
  :: goto releasing
  :: atomic { crash > 0 -> crash--; valid[i] = 0; goto over }
  fi;

releasing:              /* T is obsolete from here on */
  atomic { valid[i] = 0; credit[i] = 0 };
  if
  :: atomic { release(T) }
  :: atomic { lose_or_delay(RELEASE, T) }
  fi;
over:
  skip
}

/* Another process, which waits for the lock. */
proctype Other() {
  byte T, n, m;
  mtype got;

idle:
  if
  :: atomic { n < EPISODES -> T = token(OTHER, n); n++ }
  :: atomic { n == EPISODES -> goto over }
  fi;
asking:
  atomic { slot == NONE || slot == T -> credit[OTHER] = TTL };
  if
  :: atomic { take(T); got = reply; m = number }
  :: atomic { lose > 0 -> lose--; take(T); credit[OTHER] = 0; got = 0 }
  :: atomic { lose_or_delay(TAKE, T); credit[OTHER] = 0; got = 0 }
  fi;
  if
  :: atomic { got == GRANTED && credit[OTHER] > 0 -> act(OTHER); got = 0 }
  :: atomic { got == REFUSED -> credit[OTHER] = 0; got = 0; goto asking }
  :: atomic { got == 0 || got == GRANTED && credit[OTHER] == 0 -> credit[OTHER] = 0; got = 0 }
  fi;
  atomic { valid[OTHER] = 0 };          /* it is done, or its lease is over, or it gives up */
  if
  :: atomic { release(T); goto idle }
  :: atomic { lose_or_delay(RELEASE, T); goto idle }
  fi;
over:
  skip
}

/* ---- the environment ---- */

proctype Environment() {
  mtype command; byte t;
end:
  do
  :: atomic { left + valid[0] + valid[1] + valid[2] + valid[3] + credit[0] + credit[1] + credit[2] + credit[3] > 0 && left != 255 ->  /* a tick */
       if
       :: left > 1 -> left--
       :: left <= 1 -> left = 0; slot = NONE
       fi;
       p = 0;
       do
       :: p < 4 ->
          if :: valid[p] > 0 -> valid[p]-- :: else fi;
          if :: credit[p] > 0 -> credit[p]-- :: else fi;
          p++
       :: p == 4 -> break
       od }
  :: atomic { delayed?command,t ->                                              /* the delayed command runs */
       if
       :: command == TAKE -> take(t)
       :: command == RENEW -> renew(t)
       :: command == RELEASE -> release(t)
       :: command == HANDOVER ->
          handover(t);
          if :: reply == GRANTED && takers == 0 && empty(job) -> reached(PHANTOM) :: else fi
       :: command == ACCEPT -> accept(t)
       fi;
       command = 0; t = NONE }
  :: atomic { delayed?_,_ }                                                     /* or never runs */
  od
}

init {
  atomic {
    run Service();
    run Worker(1);
#if COPY > 0
    run Worker(2);
#endif
    run Other();
    run Environment();
  }
}
