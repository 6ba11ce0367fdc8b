/* The queue of one lock with shared leases, each with its limit, and exclusive ones. The claims: never more leases than the limit
 * that each was granted under, no shared lease beside an exclusive one, and no waiter is stranded.
 *
 * key, leases, queue and vouched are what the server stores. take, the exclusive scripts (enqueue, release) and the shared scripts
 * (sharedask, sharedrelease) are atomic steps. Process, Discarder, Environment and Foreign are those of handoff.pml. Several leases
 * of one process are several processes here, because the server has only their tokens. The model has no clock: what no holder
 * relies on may expire at any time. README.md lists the claims and the options.
 */

/* The bounds of the search, as in handoff.pml. */
#ifndef PROCESSES
#define PROCESSES 3
#endif
#ifndef EPISODES
#define EPISODES 1
#endif
#ifndef LOSE
#define LOSE 0
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef MISCOUNT
#define MISCOUNT 0
#endif
#ifndef EXPIRE
#define EXPIRE 0
#endif
#ifndef LEAVE
#define LEAVE 0
#endif
#ifndef REJOIN
#define REJOIN 0
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifndef FOREIGN
#define FOREIGN 0
#endif
#ifndef WIPE
#define WIPE 0
#endif
#ifndef REACH
#define REACH 0
#endif

/* The limits of the tokens of a process, in turns: 0 is exclusive, 7 is shared without a limit. */
#ifndef LIMIT0
#define LIMIT0 7
#endif
#ifndef NEXT0
#define NEXT0 LIMIT0
#endif
#ifndef LIMIT1
#define LIMIT1 0
#endif
#ifndef NEXT1
#define NEXT1 LIMIT1
#endif
#ifndef LIMIT2
#define LIMIT2 7
#endif
#ifndef NEXT2
#define NEXT2 LIMIT2
#endif
#ifndef LIMIT3
#define LIMIT3 7
#endif
#ifndef NEXT3
#define NEXT3 LIMIT3
#endif
#ifndef MOST
#define MOST 7          /* the greatest limit: never more leases at once */
#endif
#ifndef BOUND
#define BOUND 9         /* leases that one script grants at most */
#endif
#ifndef OLD
#define OLD 9           /* this process has the scripts of the release before, which know no shared leases */
#endif

byte lose = LOSE, late = LATE, miscount = MISCOUNT, expire = EXPIRE, leave = LEAVE, rejoin = REJOIN, crash = CRASH, wipe = WIPE;

#define NONE 0
#define MARKER 199                      /* the value of the key while shared leases are out */
#define FOREIGN_TOKEN 200
#define DAMAGED 201
#define STALE 255
#define token(process, life, n) (1 + (process) * 16 + (life) * 8 + (n))
#define owner(t) (((t) - 1) / 16)
#define is_next(t) (((t) - 1) & 1)
#define is_ours(t) ((t) != NONE && (t) < MARKER)
#define is_alive(t) (life[owner(t)] == (((t) - 1) % 16) / 8)
#define are_siblings(t, u) (is_ours(t) && is_ours(u) && (t) != (u) && ((t) - 1) / 8 == ((u) - 1) / 8)
#define is_current(t) (is_ours(t) && is_alive(t) && current[owner(t)] == (t))
#define is_in_use(t) ((is_current(t) && holding[owner(t)]) || (((t) == FOREIGN_TOKEN || (t) == DAMAGED) && foreign_holds))
#define limit(t) (owner(t) == 0 -> (is_next(t) -> NEXT0 : LIMIT0) : (owner(t) == 1 -> (is_next(t) -> NEXT1 : LIMIT1) : \
  (owner(t) == 2 -> (is_next(t) -> NEXT2 : LIMIT2) : (is_next(t) -> NEXT3 : LIMIT3))))
#define room_for(t) (limit(t) == 0 -> 1 : limit(t))     /* a token is granted while fewer leases are out */

mtype = { TAKE, TRY, ENQUEUE, RELEASE, GRANTED, REFUSED, NOTHELD, FREED, HANDED, KEPT };

/* The server. */
byte key = NONE;
chan leases = [6] of { byte };          /* the set of shared leases, which counts only while the key is a marker */
chan queue = [8] of { byte };
byte head = NONE;                       /* the first of the queue, for claims */
byte vouched = NONE;                    /* a head that keeps the tokens behind it waiting, although it cannot be granted */
bool overdue;                           /* it has not asked for too long */
chan delayed = [1] of { mtype, byte, byte };
#if defined(COUNTDEAD) || defined(REVIVE)
chan ended = [6] of { byte };           /* leases that have ended, and are still in the set */
#endif
#define count (key == MARKER -> len(leases) : 0)
#define is_out(t) (key == MARKER && leases??[eval(t)])
#define alone (key != NONE && key != MARKER)
#ifdef COUNTDEAD
#define counted (count + (key == MARKER -> len(ended) : 0))
#else
#define counted count
#endif

/* The state of the processes that other parts of the model read. */
byte current[4];
bool holding[4];
byte incoming[4];
byte hint[4];
byte discard[4];
bit life[4];
bool foreign_holds;
bool wiped;

/* These are used within one atomic step. */
hidden mtype reply;
hidden byte first, rest, self, room;
hidden byte listens, opens, stop, was_waiting, passes;

/* The claims. */
#define writes(i) (holding[i] && limit(current[i]) == 0)
#define reads(i) (holding[i] && limit(current[i]) > 0)
#if PROCESSES > 3
#define writers (writes(0) + writes(1) + writes(2) + writes(3) + foreign_holds)
#define readers (reads(0) + reads(1) + reads(2) + reads(3))
#else
#define writers (writes(0) + writes(1) + writes(2) + foreign_holds)
#define readers (reads(0) + reads(1) + reads(2))
#endif
#define within_limits (writers <= 1 && (writers == 0 || readers == 0) && readers <= MOST)
#ifdef STRICT
#define holders_fit assert(within_limits)
#else
#define holders_fit assert(wiped || within_limits)
#endif
#define foreign_value_kept assert(wiped || key == FOREIGN_TOKEN)
#define no_waiter_stranded assert(key != NONE || len(queue) == 0)
#define head_has_no_room assert(len(queue) == 0 || alone || room == 0 || count >= room_for(head))
#define newcomer_in_turn assert(len(queue) == 0)
#define never_shortened assert(!is_out(t) || REACH == 99) /* otherwise its life would become that of a claim */
#ifdef GAP
bool gap;
#define gap_opens gap = true
#define gap_closes gap = false
#define no_barging assert(len(queue) == 0 || gap)
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
#define TWO_READERS 5
#define PAST_WRITER 6   /* a reader is granted past a writer, because it goes with the one that opens the phase */
#define PLACE_LOST 7    /* a head that has not asked for too long loses its place */
#define NO_ROOM 8       /* the head of the queue waits for shared leases to end */
#define HANDED_READER 9 /* an exclusive script has handed the key to a shared token */
#define reached(situation) assert(REACH != situation)

/* ---- the scripts ---- */

/* Each script ends with it. */
inline update_head() {
  if :: len(queue) > 0 -> queue?<head> :: len(queue) == 0 -> head = NONE fi;
  if :: vouched != head || key != MARKER -> vouched = NONE; overdue = false :: else fi;
  listens = false; opens = false; stop = false; was_waiting = false; passes = false; first = NONE; rest = 0; self = NONE; room = 0
}

inline join_queue(t) {
  if :: queue??[eval(t)] :: else -> assert(nfull(queue)); queue!t fi
}

inline leave_queue(t) {
  if :: queue??[eval(t)] -> queue??eval(t) :: else fi
}

inline clear_leases() {
  do :: len(leases) > 0 -> leases?_ :: len(leases) == 0 -> break od
#if defined(COUNTDEAD) || defined(REVIVE)
  ; do :: len(ended) > 0 -> ended?_ :: len(ended) == 0 -> break od
#endif
}

/* Sends a hint to the process of t. listens says whether PUBLISH counted a listener. */
inline notify(t) {
  if
  :: is_alive(t) ->
     if
     :: hint[owner(t)] = t; listens = true
     :: lose > 0 -> lose--; listens = true
#ifndef NOCOUNT
     :: miscount > 0 -> miscount--; listens = false
#endif
     fi
  :: !is_alive(t) ->
#ifdef NOCOUNT
     listens = true
#else
     if
     :: listens = false
     :: miscount > 0 -> miscount--; listens = true
     fi
#endif
  fi
}

/* Gives t, which is not in the queue, its lease, if its process listens. */
inline grant(t) {
  never_shortened;
  if :: t == self -> listens = true :: t != self -> notify(t) fi;
  if
  :: listens && limit(t) == 0 -> clear_leases(); key = t; room--
  :: listens && limit(t) > 0 ->
     if :: key != MARKER -> clear_leases(); key = MARKER; vouched = NONE; overdue = false :: else fi;
     leases!!t; room--
  :: else
  fi
}

/* Grants the tokens of the queue that have room. own is the token of the caller. The caller has set opens, which says that no lease
 * is out, or only one that this script has granted. */
inline admit(own) {
  self = own;
  do
  :: len(queue) == 0 || alone || room == 0 -> break
  :: len(queue) > 0 && !alone && room > 0 ->
     queue?<first>;
     if
     :: counted < room_for(first) -> queue?first; grant(first)
     :: counted >= room_for(first) ->
        if
        :: opens || self == NONE || self == first || limit(self) == 0 || counted >= limit(self) -> break
        :: else ->
#ifdef NOVOUCH
           notify(first); if :: listens -> break :: else -> queue?first fi
#else
           if
           :: vouched == first && !overdue -> break
           :: vouched == first && overdue -> reached(PLACE_LOST); queue?first
           :: vouched != first -> notify(first); if :: listens -> vouched = first; overdue = false; break :: else -> queue?first fi
           fi
#endif
        fi
     fi
  od;
  if
  :: opens && key == MARKER && len(queue) > 0 ->
     rest = len(queue); stop = false; passes = false;
     do
     :: rest == 0 -> break
     :: rest > 0 -> rest--; queue?first;
        if
        :: stop || limit(first) == 0 -> passes = passes || limit(first) == 0; queue!first
        :: !stop && limit(first) > 0 && (counted >= limit(first) || room == 0) -> stop = true; queue!first
        :: else -> grant(first); if :: passes -> reached(PAST_WRITER) :: else fi
        fi
     od
  :: else
  fi
}

/* The head of the queue asks, and sends hints to the processes with leases. A process that wants its lease only learns that a token
 * waits. A process that does not want it releases it. */
#define refuse(t) if :: is_out(t) && is_alive(t) && !is_current(t) -> hint[owner(t)] = t :: else fi
inline notify_holders() {
  refuse(token(0, 0, 0)); refuse(token(0, 0, 1)); refuse(token(0, 0, 2));
  refuse(token(1, 0, 0)); refuse(token(1, 0, 1)); refuse(token(1, 0, 2));
  refuse(token(2, 0, 0)); refuse(token(2, 0, 1)); refuse(token(2, 0, 2))
#if PROCESSES > 3
  ; refuse(token(3, 0, 0)); refuse(token(3, 0, 1))
#endif
}

inline take(t) {
  if
  :: key == NONE ->
     no_barging;
     if :: len(queue) > 0 -> reached(BARGING) :: len(queue) == 0 fi;
     key = t; reply = GRANTED
  :: key == t -> reply = GRANTED
  :: else -> reply = REFUSED
  fi;
  update_head()
}

/* sharedask.lua, for a token of either kind. */
inline shared_ask(t, joins) {
  room = BOUND;
  if
  :: key == t ->
     leave_queue(t);
     if
     :: limit(t) > 0 -> reached(HANDED_READER); key = NONE; self = t; grant(t); opens = true; admit(t)
     :: limit(t) == 0
     fi;
     reply = GRANTED
  :: is_out(t) ->
     leave_queue(t);
     opens = false; admit(NONE);
     reply = GRANTED
#ifdef REVIVE
  :: key == MARKER && ended??[eval(t)] -> ended??eval(t); leases!!t; leave_queue(t); reply = GRANTED
#endif
#ifdef ADOPT
  :: are_siblings(key, t) -> reply = GRANTED
#endif
#ifdef REVIVE
  :: !alone && !is_out(t) && !(key == MARKER && ended??[eval(t)]) ->
#else
  :: !alone && !is_out(t) ->
#endif
     was_waiting = queue??[eval(t)];
#ifdef NOTURN
     if
     :: limit(t) > 0 && count < limit(t) && !was_waiting -> self = t; grant(t)
     :: else -> join_queue(t); opens = (count == 0); admit(t)
     fi;
#elif defined(OVERTAKE)
     if
     :: key == MARKER && limit(t) == 0 && !was_waiting -> clear_leases(); key = t
     :: else -> join_queue(t); opens = (count == 0); admit(t)
     fi;
#else
     join_queue(t);
     opens = (count == 0); admit(t);
#endif
     if
     :: key == t || is_out(t) -> reply = GRANTED;
        if :: !was_waiting && !opens -> newcomer_in_turn :: else fi
     :: key != t && !is_out(t) ->
        if :: !joins && !was_waiting -> leave_queue(t) :: else fi;
        if
        :: key == MARKER && queue?[eval(t)] -> vouched = t; overdue = false; notify_holders(); reached(NO_ROOM)
        :: else
        fi;
        reply = REFUSED
     fi
  :: alone && key != t ->
     if
     :: joins ->
        join_queue(t);
        if :: queue?[eval(t)] && is_ours(key) && is_alive(key) -> hint[owner(key)] = key :: else fi
     :: else
     fi;
#ifdef MARKFOREIGN
     if :: key == FOREIGN_TOKEN -> key = DAMAGED :: else fi;
#endif
     reply = REFUSED
  fi;
  update_head()
}

/* sharedrelease.lua, for a token of either kind. */
inline shared_release(t, r) {
  room = BOUND;
  leave_queue(t);
  if
  :: key == t || is_out(t) ->
     if
     :: key == t -> key = NONE
     :: is_out(t) -> leases??eval(t);
#ifdef DELKEY
        key = NONE
#else
        if :: len(leases) == 0 -> key = NONE :: len(leases) > 0 fi
#endif
     fi;
#ifdef TWICE
     if :: r != NONE -> join_queue(r) :: else fi;
#else
     if :: r != NONE && !is_out(r) -> join_queue(r) :: else fi;
#endif
#ifdef ONLYFREE
     if :: key == NONE -> opens = true; admit(r) :: else fi;
#else
     opens = (count == 0); admit(r);
#endif
     if :: len(queue) > 0 -> queue?<head> :: len(queue) == 0 -> head = NONE fi;
     no_waiter_stranded;
     head_has_no_room;
     if
     :: key == NONE -> gap_closes; reply = (r == NONE -> FREED : HANDED)
     :: key != NONE && r != NONE && (key == r || is_out(r)) -> reached(STAYING); reply = KEPT
     :: key != NONE && !(r != NONE && (key == r || is_out(r))) -> reply = (r == NONE && key == MARKER -> FREED : HANDED)
     fi
  :: !(key == t || is_out(t)) ->
#ifndef SILENTLEAVE
     if :: key == MARKER && len(queue) > 0 -> opens = (count == 0); admit(NONE) :: else fi;
#endif
     if :: len(queue) > 0 -> queue?<head> :: len(queue) == 0 -> head = NONE fi;
     assert(key != MARKER || len(queue) == 0 || room == 0 || count >= room_for(head));
     reply = NOTHELD
  fi;
  update_head()
}

/* Hands the key to the first waiter of the queue that listens, of either kind, or frees it. */
inline pass(own) {
  key = NONE;
  do
  :: len(queue) == 0 -> break
  :: len(queue) > 0 -> queue?first;
     if
     :: first == own -> key = first; break
     :: first != own -> notify(first); if :: listens -> key = first; break :: else fi
     fi
  od
}

/* enqueue.lua. A marker is left to sharedask.lua; it is a foreign value to the release before. */
inline exclusive_ask(i, t, joins) {
  if
  :: key == MARKER && i != OLD -> shared_ask(t, joins)
  :: key != MARKER || i == OLD ->
     if
     :: key == t -> leave_queue(t); reply = GRANTED
     :: key == NONE ->
        if :: joins -> join_queue(t) :: else fi;
        pass(t);
        if :: key == NONE -> key = t :: else fi;
        reply = (key == t -> GRANTED : REFUSED)
     :: else ->
        if
        :: joins ->
           join_queue(t);
           if :: queue?[eval(t)] && is_ours(key) && is_alive(key) -> hint[owner(key)] = key :: else fi
        :: else
        fi;
        reply = REFUSED
     fi;
     update_head()
  fi
}

/* release.lua, likewise. */
inline exclusive_release(i, t, r) {
  if
  :: key == MARKER && i != OLD -> shared_release(t, r)
  :: key != MARKER || i == OLD ->
     leave_queue(t);
     if
     :: key == t ->
        if :: r != NONE -> join_queue(r) :: else fi;
        pass(r);
        no_waiter_stranded;
        if
        :: key == NONE -> gap_closes; reply = FREED
        :: key != NONE && key == r -> reply = KEPT
        :: key != NONE && key != r -> reply = HANDED
        fi
     :: else -> reply = NOTHELD
     fi;
     update_head()
  fi
}

inline ask(i, t, joins) { if :: limit(t) == 0 -> exclusive_ask(i, t, joins) :: limit(t) > 0 -> shared_ask(t, joins) fi }
inline release(i, t, r) { if :: limit(t) == 0 -> exclusive_release(i, t, r) :: limit(t) > 0 -> shared_release(t, r) fi }

/* ---- a process ---- */

inline new_token(t) {
  t = token(i, life[i], issued);
  issued++; assert(issued <= 8);
  current[i] = t
}

#define may_miss (lose > 0 || (late > 0 && empty(delayed)))
inline lose_or_delay(command, t, r) {
  if
  :: lose > 0 -> lose--
  :: late > 0 && empty(delayed) -> late--; delayed!command,t,r
  fi
}

inline discard_found() {
  if :: are_siblings(key, T) && discard[i] == NONE -> reached(OWN_DISCARDED); discard[i] = key :: else fi
}

/* The timer fires only where an ask makes a difference, so that it hides no mistake. */
#ifdef NOVOUCH
#define ask_changes(T) (key == MARKER && head != NONE && count < room_for(head))
#else
#define ask_changes(T) (key == MARKER && head != NONE && (count < room_for(head) || \
  (limit(T) > 0 && T != head && count < limit(T) && (vouched != head || overdue))))
#endif
#ifdef NOTIMER
#define timer false
#elif defined(FREEONLY)
#define timer (key == NONE)
#elif defined(ANYTIME)
#define timer true
#else
#define timer (key == NONE || key == T || is_out(T) || !(queue??[eval(T)]) || ask_changes(T))
#endif

proctype Process(byte i) {
  byte T, R;
  byte episodes, issued;

idle:
  atomic { current[i] = NONE; T = NONE }
end_idle:
  atomic { episodes < EPISODES -> episodes++; new_token(T); if :: goto arriving :: goto asking fi };

arriving:
  if
  :: atomic {
       if :: limit(T) == 0 -> take(T) :: limit(T) > 0 -> ask(i, T, false) fi;
       if
       :: reply == GRANTED -> incoming[i] = T; goto granted
       :: reply == REFUSED -> discard_found(); if :: goto asking :: goto idle fi
       :: lose > 0 -> lose--; goto unanswered
       fi }
  :: atomic { limit(T) == 0 && may_miss -> lose_or_delay(TAKE, T, NONE); goto unanswered }
  :: atomic { limit(T) > 0 && may_miss -> lose_or_delay(TRY, T, NONE); goto unanswered }
  fi;
unanswered:
  if :: goto arriving :: goto asking :: goto leaving fi;

asking:
  if
  :: atomic { ask(i, T, true);
       if
       :: reply == GRANTED -> incoming[i] = T; goto granted
       :: reply == REFUSED -> discard_found(); goto waiting
       :: lose > 0 -> lose--; if :: goto asking :: goto leaving fi
       fi }
  :: atomic { lose_or_delay(ENQUEUE, T, NONE); if :: goto asking :: goto leaving fi }
  fi;

waiting:
#ifdef FOREVER
end_waiting:
#endif
  if
  :: atomic { hint[i] != NONE && hint[i] == T -> hint[i] = NONE; goto asking }
  :: timer -> goto asking
  :: atomic { leave > 0 -> leave--; goto leaving }
  :: atomic { crash > 0 -> crash--; goto crashing }
  fi;

granted:
  if
  :: atomic { incoming[i] == STALE -> incoming[i] = NONE; goto leaving }
  :: atomic { incoming[i] != STALE -> T = incoming[i]; incoming[i] = NONE; current[i] = T; holding[i] = true; holders_fit;
       if :: readers > 1 -> reached(TWO_READERS) :: else fi }
  fi;

held:
#ifdef FOREVER
  if :: i == 0 -> goto staying :: i != 0 fi;
#endif
  if
  :: atomic { holding[i] = false; current[i] = NONE;
       if :: rejoin > 0 -> rejoin--; new_token(R) :: true fi;
       goto releasing }
  :: atomic { leave > 0 -> leave--; holding[i] = false; goto leaving }
  :: atomic { crash > 0 -> crash--; goto crashing }
  fi;

leaving:
#ifdef DROPGRANT
  atomic { leave_queue(T); update_head(); goto idle };
#endif
  atomic { discard[i] == NONE -> discard[i] = T;
#ifdef REUSE
    goto asking;
#endif
    goto idle };

releasing:
  if
  :: atomic { release(i, T, R);
       if
       :: R == NONE -> goto idle
       :: R != NONE && reply == KEPT -> T = R; R = NONE; incoming[i] = T; goto granted
       :: R != NONE && reply == HANDED -> T = R; R = NONE; goto waiting
       :: R != NONE && reply == NOTHELD -> T = R; R = NONE; goto asking
       :: lose > 0 -> lose--; goto unknown
       fi }
  :: atomic { lose_or_delay(RELEASE, T, R); goto unknown }
  fi;
unknown:
  if
  :: goto releasing
  :: atomic {
       if :: discard[i] == NONE -> discard[i] = T :: true fi;
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
  atomic { holding[i] = false; hint[i] = NONE; discard[i] = NONE;
    assert(life[i] == 0); life[i] = 1; issued = 0; episodes--;
#ifdef FOREVER
    goto gone };
gone:
  atomic { current[i] = NONE };
end_gone:
  false;
staying:
end_staying:
  false
#else
    goto idle }
#endif
}

proctype Discarder() {
  byte t;
end:
  do
  :: atomic {
       if
       :: discard[0] != NONE -> t = discard[0]; discard[0] = NONE
       :: discard[1] != NONE -> t = discard[1]; discard[1] = NONE
       :: discard[2] != NONE -> t = discard[2]; discard[2] = NONE
       :: discard[3] != NONE -> t = discard[3]; discard[3] = NONE
#ifndef DROPGRANT
       :: hint[0] != NONE && hint[0] != current[0] -> t = hint[0]; hint[0] = NONE
       :: hint[1] != NONE && hint[1] != current[1] -> t = hint[1]; hint[1] = NONE
       :: hint[2] != NONE && hint[2] != current[2] -> t = hint[2]; hint[2] = NONE
       :: hint[3] != NONE && hint[3] != current[3] -> t = hint[3]; hint[3] = NONE
#endif
       fi;
       if :: release(owner(t), t, NONE) :: lose > 0 -> lose-- fi;
       t = NONE }
  od
}

/* ---- the environment ---- */

inline expires(t) {
#ifndef NOSTALE
  if :: incoming[owner(t)] == t -> incoming[owner(t)] = STALE :: else fi
#else
  skip
#endif
}

#if defined(COUNTDEAD) || defined(REVIVE)
#define remember(t) ended!t
#else
#define remember(t) skip
#endif
#ifdef SHORT
#define marker_ends true                /* the marker lives as long as any of the leases, not as the last one */
#else
#define marker_ends len(leases) == 0
#endif

/* A lease ends, and with the last one the marker. */
#define lapse(t) \
  :: atomic { leases??[eval(t)] && !is_in_use(t) && (!is_current(t) || expire > 0) -> \
       if :: is_current(t) -> expire-- :: else fi; \
       expires(t); leases??eval(t); remember(t); \
       if :: key == MARKER && marker_ends -> key = NONE; gap_opens :: else fi; update_head() }

proctype Environment() {
  mtype command; byte t, r;
end:
  do
#ifndef NOEXPIRY
  :: atomic { alone && !is_in_use(key) && (!is_current(key) || expire > 0) ->
       if :: is_current(key) -> expire-- :: else fi;
       if :: is_ours(key) -> expires(key) :: else fi;
       key = NONE; gap_opens; update_head() }
  lapse(token(0, 0, 0)) lapse(token(0, 0, 1)) lapse(token(0, 0, 2)) lapse(token(0, 0, 3))
  lapse(token(0, 1, 0)) lapse(token(0, 1, 1)) lapse(token(0, 1, 2)) lapse(token(0, 1, 3))
  lapse(token(1, 0, 0)) lapse(token(1, 0, 1)) lapse(token(1, 0, 2)) lapse(token(1, 0, 3))
  lapse(token(1, 1, 0)) lapse(token(1, 1, 1)) lapse(token(1, 1, 2)) lapse(token(1, 1, 3))
  lapse(token(2, 0, 0)) lapse(token(2, 0, 1)) lapse(token(2, 0, 2)) lapse(token(2, 0, 3))
  lapse(token(2, 1, 0)) lapse(token(2, 1, 1)) lapse(token(2, 1, 2)) lapse(token(2, 1, 3))
#if PROCESSES > 3
  lapse(token(3, 0, 0)) lapse(token(3, 0, 1)) lapse(token(3, 1, 0)) lapse(token(3, 1, 1))
#endif
#endif
  :: atomic { vouched != NONE && !overdue && (!is_current(vouched) || expire > 0) ->
       if :: is_current(vouched) -> expire-- :: else fi;
       overdue = true }
  :: atomic { wipe > 0 && (key != NONE || len(queue) > 0) -> wipe--; wiped = true; key = NONE; gap_opens;
       if
       :: true
       :: do :: len(queue) > 0 -> queue?_ :: len(queue) == 0 -> break od
       fi;
       if :: true :: clear_leases() fi; update_head() }
  :: atomic { delayed?command,t,r ->
       if
       :: command == TAKE -> take(t)
       :: command == TRY || command == ENQUEUE -> ask(owner(t), t, command == ENQUEUE)
       :: command == RELEASE -> release(owner(t), t, r)
       fi;
       if :: reply == GRANTED && !is_current(t) -> reached(LATE_GRANT) :: else fi;
       command = 0; t = NONE; r = NONE }
  :: atomic { delayed?_,_,_ }
#ifdef FOREVER
  :: atomic { timeout ->        /* no process can go on: a waiter behind the holder that stays must wait for a living one */
       assert(!(current[2] != NONE && !holding[2] && head != NONE && !is_current(head)));
       goto end_rest }
#endif
  od;
#ifdef FOREVER
end_rest:
  false
#endif
}

proctype Foreign() {
  byte attempts = FOREIGN;
end:
  do
  :: atomic { attempts > 0 && key == NONE -> attempts--; no_barging; key = FOREIGN_TOKEN; foreign_holds = true; holders_fit; update_head() }
  :: atomic { attempts > 0 -> attempts-- }
  :: atomic { foreign_holds -> foreign_value_kept; foreign_holds = false;
       if :: key == FOREIGN_TOKEN -> key = NONE; gap_opens :: else fi; update_head() }
  :: atomic { foreign_holds -> foreign_holds = false }
  od
}

init {
  atomic {
    run Process(0);
    run Process(1);
#if PROCESSES > 2
    run Process(2);
#endif
#if PROCESSES > 3
    run Process(3);
#endif
    run Discarder();
    run Environment();
#if FOREIGN > 0
    run Foreign();
#endif
  }
}
