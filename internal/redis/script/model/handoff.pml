/* The queue of one lock. The claims: one holder at a time, and no waiter is stranded.
 *
 * key and queue are what the server stores. take, enqueue and release are scripts of the server; each is one atomic step.
 * Process is the client side of one lock in one process. Environment expires keys, loses data, and runs delayed commands.
 * Foreign is a client of the classic recipe (SET NX, compare-and-delete). The model has no clock: a key may expire
 * whenever no holder relies on it. README.md lists the claims and the options.
 */

/* The bounds of the search; rows.txt sets them. Spin searches all interleavings within these bounds. */
#ifndef PROCESSES
#define PROCESSES 3
#endif
#ifndef EPISODES
#define EPISODES 1      /* waits of each process; a rejoin adds one, and a restart repeats one */
#endif
#ifndef LOSE
#define LOSE 0          /* lost commands, answers or hints */
#endif
#ifndef LATE
#define LATE 0          /* commands that time out, and then run late or never */
#endif
#ifndef MISCOUNT
#define MISCOUNT 0      /* wrong counts of PUBLISH: 0 for a live process, or 1 for a dead one */
#endif
#ifndef EXPIRE
#define EXPIRE 0        /* grants that expire before a live process confirms them or learns of them */
#endif
#ifndef LEAVE
#define LEAVE 0         /* waiters that give up, and holders that lose their lease */
#endif
#ifndef REJOIN
#define REJOIN 0        /* releases that rejoin the queue in the same step */
#endif
#ifndef CRASH
#define CRASH 0         /* processes that die and restart */
#endif
#ifndef FOREIGN
#define FOREIGN 0       /* attempts of a client of the classic recipe */
#endif
#ifndef FORGE
#define FORGE 0         /* hints that another user of the server publishes, with any token of a process or its next one */
#endif
#ifndef WIPE
#define WIPE 0          /* losses of data: of the key, and possibly of the queue */
#endif
#ifndef KEEP
#define KEEP 0          /* releases that leave the key locked for a while */
#endif
#ifndef REACH
#define REACH 0         /* the situation that must be reachable: its assertion has to fail */
#endif

byte lose = LOSE, late = LATE, miscount = MISCOUNT, expire = EXPIRE, leave = LEAVE, rejoin = REJOIN, crash = CRASH, wipe = WIPE, forge = FORGE;
#if KEEP > 0
byte keep = KEEP;
#endif

/* A token names one episode of one life of a process: one wait, and the lease that follows it. */
#define NONE 0
#define FOREIGN_TOKEN 200               /* the value that the foreign client writes */
#define KEPT_KEY 202                    /* the value that a release leaves in a key that stays locked */
#define DAMAGED 201                     /* the same value after one of our scripts changed it */
#define STALE 255                       /* replaces a token after its lease expired */
#define token(process, life, n) (1 + (process) * 16 + (life) * 8 + (n))
#define owner(t) (((t) - 1) / 16)
#define is_ours(t) ((t) != NONE && (t) < FOREIGN_TOKEN)
#define is_alive(t) (life[owner(t)] == (((t) - 1) % 16) / 8)
#define are_siblings(t, u) (is_ours(t) && is_ours(u) && (t) != (u) && ((t) - 1) / 8 == ((u) - 1) / 8)
#ifdef KINDS
#define kind(t) (owner(t) == 0 -> 1 : 0) /* how hints reach the process of a token */
#else
#define kind(t) 0
#endif
#define is_current(t) (is_ours(t) && is_alive(t) && current[owner(t)] == (t))
#define is_in_use(t) ((is_current(t) && holding[owner(t)]) || (((t) == FOREIGN_TOKEN || (t) == DAMAGED) && foreign_holds))

/* What the commands of a token may have done, as far as its process knows. APART: each had the reply to its only send, so the token is
 * not both in the key and in the queue. FRESH: besides, none has joined the queue. UNSURE: a command may run late, or twice. */
#define FRESH 0
#define APART 1
#define UNSURE 2

mtype = { TAKE, TRY, ENQUEUE, RELEASE, KEEP_LOCKED, GRANTED, REFUSED, NOTHELD, FREED, HANDED, KEPT,
  ENQUEUE_APART, ENQUEUE_FRESH, RELEASE_APART };

/* The server. */
byte key = NONE;
chan queue = [8] of { byte };
chan delayed = [1] of { mtype, byte, byte };    /* a delayed command: its kind, token and rejoin token */

/* The state of the processes that other parts of the model read. */
byte current[3];        /* token of the episode */
bool holding[3];        /* whether the process acts under the lock */
byte incoming[3];       /* token of a granting answer that has not arrived yet, or STALE */
byte hint[3];           /* token of the last hint, which makes its waiter ask again; a newer hint replaces it */
byte discard[3];        /* token to release in the background */
byte issued[3];         /* number of tokens that this life of the process has issued */
bit life[3];            /* changes at a restart: the process gets a new id */
bool foreign_holds;     /* whether the foreign client acts under the lock */
bool wiped;             /* data was lost: exclusion is not promised any more */

hidden mtype reply;     /* answer of the last script; used within one atomic step */
hidden byte counted, missed; /* what a hint has met; used within one atomic step */
hidden byte first, next; /* the first of the queue, and the chosen next holder; used within one atomic step */

/* The claims. */
#ifdef STRICT
#define one_holder assert(holding[0] + holding[1] + holding[2] + foreign_holds <= 1)
#else
#define one_holder assert(wiped || holding[0] + holding[1] + holding[2] + foreign_holds <= 1)
#endif
#define no_waiter_stranded assert(key != NONE || empty(queue))
#define in_turn assert(next == NONE || key == next)
#define foreign_value_kept assert(wiped || key == FOREIGN_TOKEN)
#ifdef GAP
bool gap;               /* the key is absent, and no release of ours removed it */
#define gap_opens gap = true
#define gap_closes gap = false
#define no_barging assert(empty(queue) || gap)
#else
#define gap_opens skip
#define gap_closes skip
#define no_barging skip
#endif

/* The situations that must be reachable. */
#define BARGING 1
#define LATE_GRANT 2
#define STAYING 3
#define OWN_DISCARDED 4
#define KEY_KEPT 5
#define TOKEN_TWICE 6
#define reached(situation) assert(REACH != situation)

/* ---- the scripts ---- */

inline join_queue(t) {
  if :: queue??[eval(t)] :: else -> assert(nfull(queue)); queue!t fi
}

/* A token is in the queue twice if its first command to join it is late. */
inline leave_queue(t) {
  do :: queue??[eval(t)] -> queue??eval(t) :: else -> break od
}

/* The claim of a command that says that its token is apart: the token is not in the queue, although it has the key. */
#define is_apart(t) assert(!(queue??[eval(t)]))

/* Sends a hint to the process of t by one kind of message, PUBLISH or SPUBLISH. counted says whether it counted a listener. */
inline send(t, k) {
  if
  :: kind(t) == k && is_alive(t) ->
     if
     :: hint[owner(t)] = t; counted = true
     :: lose > 0 -> lose--; counted = true              /* a listener is counted, but the hint is lost */
#ifndef NOCOUNT
     :: miscount > 0 -> miscount--; missed = true       /* no listener is counted: the waiter loses its place */
#endif
     fi
  :: kind(t) == k && !is_alive(t) ->
#ifdef NOCOUNT
     counted = true; missed = true                      /* the count is ignored, as in a cluster older than Redis 7 */
#else
     if
     :: true
     :: miscount > 0 -> miscount--; counted = true; missed = true /* the half-open connection of a dead process is counted */
     fi
#endif
  :: kind(t) != k
  fi
}

/* Sends a hint to the process of t: by the caller's own kind of message, and then by the other kind. */
inline notify(t, own) {
  counted = false; missed = false;
  send(t, own);
#ifndef OWNKIND
  if :: !counted -> send(t, 1 - own) :: else fi;
#endif
#ifdef KEEPDEAD
  counted = true;
#endif
  next = (missed || counted == is_alive(t) -> NONE : t);
  in_turn                                               /* a waiter that listens keeps its place, and a dead one costs no claim */
}

/* Gives the key to the first waiter of the queue that listens, or frees it. self is the token of the caller, which needs no hint.
 * own is the kind of its client. */
inline pass(self, own) {
  key = NONE;
  do
  :: empty(queue) -> break
  :: nempty(queue) -> queue?first;
     if
     :: first == self -> key = first; break
     :: first != self -> notify(first, own); if :: counted -> key = first; break :: else fi
     fi
  od;
  next = key
}

inline take(t) {
  if
  :: key == NONE ->
     no_barging;
     if :: nempty(queue) -> reached(BARGING) :: empty(queue) fi;
     key = t; reply = GRANTED
  :: key == t -> reply = GRANTED
  :: else -> reply = REFUSED
  fi
}

/* apart says that each command of the token had the reply to its only send. fresh says besides that no command has joined the queue. */
inline enqueue(t, joins, apart, fresh) {
  if
  :: key == t ->
     if
     :: apart -> is_apart(t)
     :: !apart -> if :: queue??[eval(t)] -> reached(TOKEN_TWICE) :: else fi; leave_queue(t)
     fi;
     reply = GRANTED
#ifdef ADOPT
  :: are_siblings(key, t) -> reply = GRANTED
#endif
  :: key == NONE ->
     if :: joins -> join_queue(t) :: else fi;
     pass(t, kind(t));
#ifdef BARGE
     key = t;
#else
     if :: key == NONE -> key = t :: else fi;
#endif
     in_turn;
     if
     :: key == t && apart -> is_apart(t)
     :: key == t && !apart -> leave_queue(t)
     :: key != t
     fi;
     reply = (key == t -> GRANTED : REFUSED)
  :: else ->
     if
     :: joins ->
        if :: fresh -> assert(nfull(queue)); queue!t :: !fresh -> join_queue(t) fi;
        if :: queue?[eval(t)] && is_ours(key) && is_alive(key) -> hint[owner(key)] = key :: else fi /* tells the holder that others wait */
     :: else
     fi;
#ifdef MARK
     if :: key == FOREIGN_TOKEN -> key = DAMAGED :: else fi;
#endif
     reply = REFUSED
  fi
}

inline release(t, r, apart) {
  if :: key == t && apart -> is_apart(t) :: else -> leave_queue(t) fi;
  if
  :: key == t ->
     if
     :: r != NONE && apart -> assert(nfull(queue)); queue!r
     :: r != NONE && !apart -> join_queue(r)
     :: r == NONE
     fi;
     pass(r, kind(t));
     no_waiter_stranded; in_turn;
     if
     :: key == NONE -> gap_closes; reply = FREED
     :: key != NONE && key == r -> reached(STAYING); reply = KEPT
     :: key != NONE && key != r -> reply = HANDED
     fi
  :: else -> reply = NOTHELD
  fi
}

/* The release of a key that stays locked. The value is no token, so no release frees the key: it expires. */
inline keep_locked(t) {
  if
  :: key == t ->
     key = KEPT_KEY;
     reached(KEY_KEPT); reply = FREED
  :: else -> reply = NOTHELD
  fi
}

/* ---- a process ---- */

inline new_token(t) {
  t = token(i, life[i], issued[i]);
  issued[i]++; assert(issued[i] <= 8);
  current[i] = t
}

/* The outcome of a command is unknown: the command was lost or is delayed. */
inline lose_or_delay(command, t, r) {
  if
  :: lose > 0 -> lose--
  :: late > 0 && empty(delayed) -> late--; delayed!command,t,r
  fi
}

/* The answer names another token of this process. That token is obsolete, so the process releases it. */
inline discard_found() {
#ifndef KEEPOLD
  if :: are_siblings(key, T) && discard[i] == NONE -> reached(OWN_DISCARDED); discard[i] = key :: else fi
#else
  skip
#endif
}

#ifdef NOTIMER
#define timer false
#elif defined(FREEONLY)
#define timer (key == NONE)
#elif defined(ANYTIME)
#define timer true
#else
#define timer (key == NONE || key == T || !(queue??[eval(T)]))  /* only where the timer makes a difference */
#endif

#ifdef TRYLOCK
#define attempt(t) enqueue(t, false, false, false)
#define ATTEMPT TRY
#else
#define attempt(t) take(t)
#define ATTEMPT TAKE
#endif

proctype Process(byte i) {
  byte T, R;            /* tokens: of the episode, and to rejoin with */
  byte episodes;
  byte sends;           /* what the commands of T may have done: FRESH, APART or UNSURE */

idle:
  atomic { current[i] = NONE; T = NONE; sends = FRESH }
end_idle:
  atomic { episodes < EPISODES -> episodes++; new_token(T); if :: goto arriving :: goto asking fi };

arriving:               /* one attempt that does not wait; the process may stop after it */
  if
  :: atomic { attempt(T);
       if
       :: reply == GRANTED -> incoming[i] = key; goto granted
       :: reply == REFUSED -> discard_found(); if :: goto asking :: goto idle fi
       :: lose > 0 -> lose--; goto unanswered
       fi }
  :: atomic { lose_or_delay(ATTEMPT, T, NONE); goto unanswered }
  fi;
unanswered:
  sends = UNSURE;
  if :: goto arriving :: goto asking :: goto leaving fi;

asking:                 /* the process asks, joins the queue, or confirms a grant; also after an unknown outcome */
  if
  :: atomic { enqueue(T, true, (sends != UNSURE), (sends == FRESH));
       if :: sends == FRESH -> sends = APART :: else fi;
       if
       :: reply == GRANTED -> incoming[i] = key; goto granted
       :: reply == REFUSED -> discard_found(); goto waiting
       :: lose > 0 -> lose--; sends = UNSURE; if :: goto asking :: goto leaving fi
       fi }
  :: atomic { lose_or_delay((sends == UNSURE -> ENQUEUE : (sends == APART -> ENQUEUE_APART : ENQUEUE_FRESH)), T, NONE);
       sends = UNSURE; if :: goto asking :: goto leaving fi }
  fi;

waiting:
  if
  :: atomic { hint[i] != NONE && hint[i] == T -> hint[i] = NONE; goto asking }
  :: timer -> goto asking
  :: atomic { leave > 0 -> leave--; goto leaving }
  :: atomic { crash > 0 -> crash--; goto crashing }
  fi;

granted:                /* the answer arrives; it counts only if the lease, counted from the sending of the command, is still valid */
  if
  :: atomic { incoming[i] == STALE -> incoming[i] = NONE; goto leaving }
  :: atomic { incoming[i] != STALE -> T = incoming[i]; incoming[i] = NONE; current[i] = T; holding[i] = true;
       if :: sends == FRESH -> sends = APART :: else fi; one_holder }
  fi;

held:
  if
  :: atomic { holding[i] = false; current[i] = NONE;
       if :: rejoin > 0 -> rejoin--; new_token(R) :: true fi;
       goto releasing }
  :: atomic { leave > 0 -> leave--; holding[i] = false; goto leaving }
  :: atomic { crash > 0 -> crash--; goto crashing }
  fi;

leaving:                /* the process waits no longer, or has lost its lease: T is obsolete; a new episode need not wait for its release */
#ifdef DROPGRANT
  atomic { leave_queue(T); goto idle };
#endif
  atomic { discard[i] == NONE -> discard[i] = T; sends = FRESH;
#ifdef REUSE
    sends = UNSURE; goto asking;
#endif
    goto idle };

releasing:              /* T is obsolete from here on */
  if
  :: atomic { release(T, R, (sends != UNSURE));
       if
       :: R == NONE -> goto idle
       :: R != NONE && reply == KEPT -> T = R; R = NONE; sends = APART; incoming[i] = T; goto granted
       :: R != NONE && reply == HANDED -> T = R; R = NONE; sends = APART; goto waiting
       :: R != NONE && reply == NOTHELD -> T = R; R = NONE; sends = UNSURE; goto asking
       :: lose > 0 -> lose--; goto unknown
       fi }
  :: atomic { lose_or_delay((sends == UNSURE -> RELEASE : RELEASE_APART), T, R); goto unknown }
#if KEEP > 0
  :: atomic { keep > 0 && R == NONE -> keep--; keep_locked(T);
       if :: goto idle :: lose > 0 -> lose--; goto unknown fi }
  :: atomic { keep > 0 && R == NONE && (lose > 0 || (late > 0 && empty(delayed))) ->
       keep--; lose_or_delay(KEEP_LOCKED, T, NONE); goto unknown }
#endif
  fi;
unknown:                /* sends the release again; or leaves T to a background release or to its TTL, while R asks whether it is in the queue */
  if
  :: goto releasing
  :: atomic {
       if :: discard[i] == NONE -> discard[i] = T :: true fi;
       if
       :: R == NONE -> goto idle
#ifdef RESUME
       :: R != NONE -> current[i] = T; R = NONE; sends = UNSURE; goto asking
#else
       :: R != NONE -> T = R; R = NONE; sends = UNSURE; if :: goto asking :: goto leaving fi
#endif
       fi }
  fi;

crashing:
  atomic { holding[i] = false; hint[i] = NONE; discard[i] = NONE;
    assert(life[i] == 0); life[i] = 1; issued[i] = 0; episodes--; goto idle }
}

/* Background releases of all processes: of obsolete tokens, and of tokens that a hint names and the process does not want. */
proctype Discarder() {
  byte t;
end:
  do
  :: atomic {
       if
       :: discard[0] != NONE -> t = discard[0]; discard[0] = NONE
       :: discard[1] != NONE -> t = discard[1]; discard[1] = NONE
       :: discard[2] != NONE -> t = discard[2]; discard[2] = NONE
#if !defined(KEEPOLD) && !defined(DROPGRANT) && FORGE == 0
       :: hint[0] != NONE && hint[0] != current[0] -> t = hint[0]; hint[0] = NONE
       :: hint[1] != NONE && hint[1] != current[1] -> t = hint[1]; hint[1] = NONE
       :: hint[2] != NONE && hint[2] != current[2] -> t = hint[2]; hint[2] = NONE
#endif
       fi;
       if :: release(t, NONE, false) :: lose > 0 -> lose-- fi;
       t = NONE }
  od
}

#if FORGE > 0
/* A forged hint may name any token. A process discards a token only if it has issued that token. The release comes later. */
#ifdef UNCHECKED
#define is_issued(i) true
#else
#define is_issued(i) (hint[i] - token(i, life[i], 0) < issued[i])
#endif
#define names_discarded(i) (hint[i] != NONE && hint[i] != current[i])

proctype HintReader(byte i) {
end:
  do
  :: atomic { names_discarded(i) && is_issued(i) && discard[i] == NONE -> discard[i] = hint[i]; hint[i] = NONE }
  :: atomic { names_discarded(i) && !is_issued(i) -> hint[i] = NONE }
  od
}

proctype Forger() {
  byte i, n;
end:
  do
  :: atomic { forge > 0 -> forge--;
       if :: i = 0 :: i = 1 fi;
       n = 0;
       do :: n < issued[i] -> n++ :: break od;
       hint[i] = token(i, life[i], n); i = 0; n = 0 }
  od
}
#endif

/* ---- the environment ---- */

proctype Environment() {
  mtype command; byte t, r;
end:
  do
#ifndef NOEXPIRY
  :: atomic { key != NONE && !is_in_use(key) && (!is_current(key) || expire > 0) -> /* the key expires */
       if :: is_current(key) -> expire-- :: else fi;
#ifndef NOSTALE
       if :: incoming[0] == key -> incoming[0] = STALE :: else fi;
       if :: incoming[1] == key -> incoming[1] = STALE :: else fi;
       if :: incoming[2] == key -> incoming[2] = STALE :: else fi;
#endif
       key = NONE; gap_opens }
#endif
  :: atomic { wipe > 0 && (key != NONE || nempty(queue)) -> wipe--; wiped = true; key = NONE; gap_opens;
       if
       :: true
       :: do :: nempty(queue) -> queue?_ :: empty(queue) -> break od
       fi }
  :: atomic { delayed?command,t,r ->                                            /* the delayed command runs */
       if
       :: command == TAKE -> take(t)
       :: command == TRY || command == ENQUEUE || command == ENQUEUE_APART || command == ENQUEUE_FRESH ->
          enqueue(t, (command != TRY), (command == ENQUEUE_APART || command == ENQUEUE_FRESH), (command == ENQUEUE_FRESH))
       :: command == RELEASE || command == RELEASE_APART -> release(t, r, (command == RELEASE_APART))
#if KEEP > 0
       :: command == KEEP_LOCKED -> keep_locked(t)
#endif
       fi;
       if :: reply == GRANTED && !is_current(t) -> reached(LATE_GRANT) :: else fi;
       command = 0; t = NONE; r = NONE }
  :: atomic { delayed?_,_,_ }                                                   /* or never runs */
  od
}

proctype Foreign() {
  byte attempts = FOREIGN;
end:
  do
  :: atomic { attempts > 0 && key == NONE -> attempts--; no_barging; key = FOREIGN_TOKEN; foreign_holds = true; one_holder }
  :: atomic { attempts > 0 -> attempts-- }
  :: atomic { foreign_holds -> foreign_value_kept; foreign_holds = false;       /* compare-and-delete */
       if :: key == FOREIGN_TOKEN -> key = NONE; gap_opens :: else fi }
  :: atomic { foreign_holds -> foreign_holds = false }                          /* the client dies; its key expires */
  od
}

init {
  atomic {
    run Process(0);
    run Process(1);
#if PROCESSES > 2
    run Process(2);
#endif
    run Discarder();
    run Environment();
#if FORGE > 0
    run HintReader(0);
    run HintReader(1);
    run Forger();
#endif
#if FOREIGN > 0
    run Foreign();
#endif
  }
}
