/* The waiting line of one lock: who gets the key, and that nobody is left behind.
 *
 * key and line are what the server stores; take, enqueue and release are its
 * scripts, each one indivisible step. Process is the client's side of one lock
 * in one process, World is time and mishap, Foreign is a client of the classic
 * recipe (SET NX, compare-and-delete). There are no clocks: a key may expire
 * whenever nobody relies on it. README.md says what is checked, and how.
 */

/* How much there is of everything; check.sh sets them. All interleavings within these bounds are searched. */
#ifndef PROCESSES
#define PROCESSES 3
#endif
#ifndef EPISODES
#define EPISODES 1      /* waits of each process; a rejoin adds one, and a restart repeats one */
#endif
#ifndef LOSE
#define LOSE 0          /* commands, answers or hints that are lost */
#endif
#ifndef LATE
#define LATE 0          /* commands that are given up, and run later or never */
#endif
#ifndef DEAF
#define DEAF 0          /* wrong counts of PUBLISH: 0 for a live process, 1 for a dead one */
#endif
#ifndef SLOW
#define SLOW 0          /* grants that expire before a live process confirms them or hears of them */
#endif
#ifndef LEAVE
#define LEAVE 0         /* waiters that give up, and holders whose validity ends */
#endif
#ifndef REJOIN
#define REJOIN 0        /* releases that rejoin the line in the same step */
#endif
#ifndef CRASH
#define CRASH 0         /* processes that die and start anew */
#endif
#ifndef FOREIGN
#define FOREIGN 0       /* attempts of a client of the classic recipe */
#endif
#ifndef FORGE
#define FORGE 0         /* hints that another user of the server publishes, of any token of a process, also the next one */
#endif
#ifndef WIPE
#define WIPE 0          /* losses of data: the key goes, and maybe the line */
#endif
#ifndef REACH
#define REACH 0         /* the situation that must be reachable: its assertion has to fail */
#endif

byte lose = LOSE, late = LATE, deaf = DEAF, slow = SLOW, leave = LEAVE, rejoin = REJOIN, crash = CRASH, wipe = WIPE, forge = FORGE;

/* Tokens. One names one episode (one wait, and the lease that follows) of one life of a process. */
#define NONE 0
#define ALIEN 200                       /* the value that the foreign client writes */
#define DAMAGED 201                     /* the same, changed by us */
#define STALE 255                       /* instead of a token: its lease has expired */
#define token(process, life, n) (1 + (process) * 16 + (life) * 8 + (n))
#define owner(t) (((t) - 1) / 16)
#define ours(t) ((t) != NONE && (t) < ALIEN)
#define alive(t) (life[owner(t)] == (((t) - 1) % 16) / 8)
#define siblings(t, u) (ours(t) && ours(u) && (t) != (u) && ((t) - 1) / 8 == ((u) - 1) / 8)
#define wanted(t) (ours(t) && alive(t) && current[owner(t)] == (t))
#define relied_on(t) ((wanted(t) && holding[owner(t)]) || ((t) >= ALIEN && foreign))

mtype = { TAKE, TRY, ENQUEUE, RELEASE, GRANTED, REFUSED, NOTHELD, FREED, HANDED, KEPT };

/* The server. */
byte key = NONE;
chan line = [8] of { byte };
chan behind = [1] of { mtype, byte, byte };     /* a command left behind: itself, token, rejoin token */

/* The processes, as others see them. */
byte current[3];        /* token of the episode */
bool holding[3];        /* it acts under the lock */
byte coming[3];         /* token that a granting answer under way is about, or STALE */
byte hint[3];           /* token of the last hint: "look again"; a newer one replaces it */
byte dead[3];           /* token that is being released beside all else */
byte issued[3];         /* how many tokens this life of a process has issued */
bit life[3];            /* rises at a restart: a new process id */
bool foreign;           /* the foreign client acts under the lock */
bool wiped;             /* data was lost: exclusion is not promised any more */

hidden mtype reply;     /* of the last script; scratch inside one atomic step */
hidden byte first, turn; /* of the line, and whose turn it is; likewise */

/* What is claimed. */
#ifdef STRICT
#define exclusive assert(holding[0] + holding[1] + holding[2] + foreign <= 1)
#else
#define exclusive assert(wiped || holding[0] + holding[1] + holding[2] + foreign <= 1)
#endif
#define nobody_stranded assert(key != NONE || empty(line))
#define in_turn assert(turn == NONE || key == turn)
#define undamaged assert(wiped || key == ALIEN)
#ifdef GHOST
bool gap;               /* the key is absent, and no release of ours made it so */
#define gap_opens gap = true
#define gap_closes gap = false
#define passes_line assert(empty(line) || gap)
#else
#define gap_opens skip
#define gap_closes skip
#define passes_line skip
#endif

/* What must be reachable. */
#define BARGING 1
#define LATE_HOLDER 2
#define STAYING 3
#define ORPHAN 4
#define reached(situation) assert(REACH != situation)

/* ---- the scripts ---- */

inline join_line(t) {
  if :: line??[eval(t)] :: else -> assert(nfull(line)); line!t fi
}

inline leave_line(t) {
  if :: line??[eval(t)] -> line??eval(t) :: else fi
}

/* The key goes to the first of the line that listens, or is freed. self is the caller's: it needs no hint. */
inline pass(self) {
  key = NONE;
  do
  :: empty(line) -> break
  :: nempty(line) -> line?first;
     if
     :: first == self -> key = first; break
     :: first != self && alive(first) ->
        if
        :: hint[owner(first)] = first; key = first; break
        :: lose > 0 -> lose--; key = first; break       /* counted, but the hint is lost */
#ifndef BLIND
        :: deaf > 0 -> deaf--                           /* not counted: loses its place */
#endif
        fi
     :: first != self && !alive(first) ->
#ifdef BLIND
        key = first; break                              /* the count is ignored, as in a cluster */
#else
        if
        :: true
        :: deaf > 0 -> deaf--; key = first; break       /* counted, as its connection is half open */
        fi
#endif
     fi
  od;
  turn = key
}

inline take(t) {
  if
  :: key == NONE ->
     passes_line;
     if :: nempty(line) -> reached(BARGING) :: empty(line) fi;
     key = t; reply = GRANTED
  :: key == t -> reply = GRANTED
  :: else -> reply = REFUSED
  fi
}

inline enqueue(t, joins) {
  if
  :: key == t -> leave_line(t); reply = GRANTED
#ifdef ADOPT
  :: siblings(key, t) -> reply = GRANTED
#endif
  :: key == NONE ->
     if :: joins -> join_line(t) :: else fi;
     pass(t);
#ifdef BARGE
     key = t;
#else
     if :: key == NONE -> key = t :: else fi;
#endif
     in_turn;
     reply = (key == t -> GRANTED : REFUSED)
  :: else ->
     if
     :: joins ->
        join_line(t);
        if :: line?[eval(t)] && ours(key) && alive(key) -> hint[owner(key)] = key :: else fi   /* contended */
     :: else
     fi;
#ifdef MARK
     if :: key == ALIEN -> key = DAMAGED :: else fi;
#endif
     reply = REFUSED
  fi
}

inline release(t, r) {
  leave_line(t);
  if
  :: key == t ->
     if :: r != NONE -> join_line(r) :: else fi;
     pass(r);
     nobody_stranded; in_turn;
     if
     :: key == NONE -> gap_closes; reply = FREED
     :: key != NONE && key == r -> reached(STAYING); reply = KEPT
     :: key != NONE && key != r -> reply = HANDED
     fi
  :: else -> reply = NOTHELD
  fi
}

/* ---- a process ---- */

inline mint(t) {
  t = token(i, life[i], issued[i]);
  issued[i]++; assert(issued[i] <= 8);
  current[i] = t
}

/* The outcome of a command stays unknown, because it was lost or left behind. */
inline mishap(command, t, r) {
  if
  :: lose > 0 -> lose--
  :: late > 0 && empty(behind) -> late--; behind!command,t,r
  fi
}

/* The answer names another token of this process: that one is dead, and is released. */
inline sweep() {
#ifndef NOREFUSE
  if :: siblings(key, T) && dead[i] == NONE -> reached(ORPHAN); dead[i] = key :: else fi
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
#define timer (key == NONE || key == T || !(line??[eval(T)]))   /* only where it makes a difference */
#endif

#ifdef TRYING
#define attempt(t) enqueue(t, false)
#define ATTEMPT TRY
#else
#define attempt(t) take(t)
#define ATTEMPT TAKE
#endif

proctype Process(byte i) {
  byte T, R;            /* tokens: of the episode, to rejoin with */
  byte episodes;

idle:
  atomic { current[i] = NONE; T = NONE }
end_idle:
  atomic { episodes < EPISODES -> episodes++; mint(T); if :: goto arriving :: goto asking fi };

arriving:               /* one attempt that does not wait; it may be the last */
  if
  :: atomic { attempt(T);
       if
       :: reply == GRANTED -> coming[i] = key; goto granted
       :: reply == REFUSED -> sweep(); if :: goto asking :: goto idle fi
       :: lose > 0 -> lose--; goto unanswered
       fi }
  :: atomic { mishap(ATTEMPT, T, NONE); goto unanswered }
  fi;
unanswered:
  if :: goto arriving :: goto asking :: goto leaving fi;

asking:                 /* it asks, joins the line, confirms a grant; also after an unknown outcome */
  if
  :: atomic { enqueue(T, true);
       if
       :: reply == GRANTED -> coming[i] = key; goto granted
       :: reply == REFUSED -> sweep(); goto waiting
       :: lose > 0 -> lose--; if :: goto asking :: goto leaving fi
       fi }
  :: atomic { mishap(ENQUEUE, T, NONE); if :: goto asking :: goto leaving fi }
  fi;

waiting:
  if
  :: atomic { hint[i] != NONE && hint[i] == T -> hint[i] = NONE; goto asking }
  :: timer -> goto asking
  :: atomic { leave > 0 -> leave--; goto leaving }
  :: atomic { crash > 0 -> crash--; goto crashing }
  fi;

granted:                /* the answer arrives: worth nothing if its lease, counted from the sending, is over */
  if
  :: atomic { coming[i] == STALE -> coming[i] = NONE; goto leaving }
  :: atomic { coming[i] != STALE -> T = coming[i]; coming[i] = NONE; current[i] = T; holding[i] = true; exclusive }
  fi;

held:
  if
  :: atomic { holding[i] = false; current[i] = NONE;
       if :: rejoin > 0 -> rejoin--; mint(R) :: true fi;
       goto releasing }
  :: atomic { leave > 0 -> leave--; holding[i] = false; goto leaving }
  :: atomic { crash > 0 -> crash--; goto crashing }
  fi;

leaving:                /* nobody waits here any more, or the lease is lost: T is dead; a newcomer need not wait for that */
#ifdef DROPGRANT
  atomic { leave_line(T); goto idle };
#endif
  atomic { dead[i] == NONE -> dead[i] = T;
#ifdef REUSE
    goto asking;
#endif
    goto idle };

releasing:              /* T is dead from here on */
  if
  :: atomic { release(T, R);
       if
       :: R == NONE -> goto idle
       :: R != NONE && reply == KEPT -> T = R; R = NONE; coming[i] = T; goto granted
       :: R != NONE && reply == HANDED -> T = R; R = NONE; goto waiting
       :: R != NONE && reply == NOTHELD -> T = R; R = NONE; goto asking
       :: lose > 0 -> lose--; goto unsure
       fi }
  :: atomic { mishap(RELEASE, T, R); goto unsure }
  fi;
unsure:                 /* sent again; or left to be released beside, or to expire, and R asks whether it stands in line */
  if
  :: goto releasing
  :: atomic {
       if :: dead[i] == NONE -> dead[i] = T :: true fi;
       if
       :: R == NONE -> goto idle
#ifdef RESUME
       :: R != NONE -> current[i] = T; R = NONE; goto asking
#else
       :: R != NONE -> T = R; R = NONE; if :: goto asking :: goto leaving fi
#endif
       fi }
  fi;

crashing:
  atomic { holding[i] = false; hint[i] = NONE; dead[i] = NONE;
    assert(life[i] == 0); life[i] = 1; issued[i] = 0; episodes--; goto idle }
}

/* What all processes do beside: they release dead tokens, and those that a hint names though nobody here wants them. */
proctype Beside() {
  byte t;
end:
  do
  :: atomic {
       if
       :: dead[0] != NONE -> t = dead[0]; dead[0] = NONE
       :: dead[1] != NONE -> t = dead[1]; dead[1] = NONE
       :: dead[2] != NONE -> t = dead[2]; dead[2] = NONE
#if !defined(NOREFUSE) && !defined(DROPGRANT) && FORGE == 0
       :: hint[0] != NONE && hint[0] != current[0] -> t = hint[0]; hint[0] = NONE
       :: hint[1] != NONE && hint[1] != current[1] -> t = hint[1]; hint[1] = NONE
       :: hint[2] != NONE && hint[2] != current[2] -> t = hint[2]; hint[2] = NONE
#endif
       fi;
       if :: release(t, NONE) :: lose > 0 -> lose-- fi;
       t = NONE }
  od
}

#if FORGE > 0
/* A hint may be forged: it names a token that is dead only if the process has issued it. The release comes later. */
#ifdef CREDULOUS
#define is_issued(i) true
#else
#define is_issued(i) (hint[i] - token(i, life[i], 0) < issued[i])
#endif
#define names_dead(i) (hint[i] != NONE && hint[i] != current[i])

proctype Heeds(byte i) {
end:
  do
  :: atomic { names_dead(i) && is_issued(i) && dead[i] == NONE -> dead[i] = hint[i]; hint[i] = NONE }
  :: atomic { names_dead(i) && !is_issued(i) -> hint[i] = NONE }
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

/* ---- the rest of the world ---- */

proctype World() {
  mtype command; byte t, r;
end:
  do
#ifndef NOEXPIRY
  :: atomic { key != NONE && !relied_on(key) && (!wanted(key) || slow > 0) ->   /* expiry */
       if :: wanted(key) -> slow-- :: else fi;
#ifndef NOSTALE
       if :: coming[0] == key -> coming[0] = STALE :: else fi;
       if :: coming[1] == key -> coming[1] = STALE :: else fi;
       if :: coming[2] == key -> coming[2] = STALE :: else fi;
#endif
       key = NONE; gap_opens }
#endif
  :: atomic { wipe > 0 && (key != NONE || nempty(line)) -> wipe--; wiped = true; key = NONE; gap_opens;
       if
       :: true
       :: do :: nempty(line) -> line?_ :: empty(line) -> break od
       fi }
  :: atomic { behind?command,t,r ->                                             /* it runs late */
       if
       :: command == TAKE -> take(t)
       :: command == TRY || command == ENQUEUE -> enqueue(t, command == ENQUEUE)
       :: command == RELEASE -> release(t, r)
       fi;
       if :: reply == GRANTED && !wanted(t) -> reached(LATE_HOLDER) :: else fi;
       command = 0; t = NONE; r = NONE }
  :: atomic { behind?_,_,_ }                                                    /* or never */
  od
}

proctype Foreign() {
  byte attempts = FOREIGN;
end:
  do
  :: atomic { attempts > 0 && key == NONE -> attempts--; passes_line; key = ALIEN; foreign = true; exclusive }
  :: atomic { attempts > 0 -> attempts-- }
  :: atomic { foreign -> undamaged; foreign = false;                            /* compare-and-delete */
       if :: key == ALIEN -> key = NONE; gap_opens :: else fi }
  :: atomic { foreign -> foreign = false }                                      /* it dies; its key expires */
  od
}

init {
  atomic {
    run Process(0);
    run Process(1);
#if PROCESSES > 2
    run Process(2);
#endif
    run Beside();
    run World();
#if FORGE > 0
    run Heeds(0);
    run Heeds(1);
    run Forger();
#endif
#if FOREIGN > 0
    run Foreign();
#endif
  }
}
