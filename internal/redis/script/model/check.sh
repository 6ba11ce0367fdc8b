#!/usr/bin/env bash
# Checks the models, two searches at a time: one line for each, and an error if any does not end as expected.
# With -full, the large ones too. It needs gcc and, where spin is missing, a Debian on which it may install it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# What is to come out, how to search (all states, or all fair cycles), the model, and the words that it is built with.
quick='
holds        states    handoff  LOSE LEAVE FOREIGN GHOST
holds        states    handoff  DEAF LEAVE CRASH
holds        states    handoff  LOSE LATE SLOW LEAVE REJOIN PROCESSES=2
holds        states    handoff  LATE REJOIN TRYING PROCESSES=2 EPISODES=2
holds        states    handoff  LEAVE FOREIGN WIPE
holds        states    handoff  LOSE CRASH BLIND
holds        states    handoff  FORGE=2 LOSE REJOIN PROCESSES=2
holds        states    handoff  FORGE=2 LATE LEAVE PROCESSES=2
holds        progress  handoff  LOSE ANYTIME
holds        progress  handoff  LATE REJOIN ANYTIME PROCESSES=2
holds        progress  handoff  LATE LEAVE FOREIGN ANYTIME PROCESSES=2
reached      states    handoff  CRASH REACH=1
reached      states    handoff  LATE LEAVE REACH=2
reached      states    handoff  REJOIN REACH=3
reached      states    handoff  LOSE REJOIN REACH=4
two-holders  states    handoff  ADOPT LATE PROCESSES=2 EPISODES=2
two-holders  states    handoff  REUSE LEAVE
two-holders  states    handoff  RESUME LOSE REJOIN
two-holders  states    handoff  NOSTALE SLOW
two-holders  states    handoff  STRICT WIPE
two-holders  states    handoff  CREDULOUS FORGE=2 PROCESSES=2
out-of-turn  states    handoff  BARGE CRASH
damaged      states    handoff  MARK FOREIGN
stranded     states    handoff  NOTIMER LOSE
stranded     states    handoff  FREEONLY LOSE
stranded     states    handoff  DROPGRANT NOTIMER LEAVE
no-progress  progress  handoff  NOEXPIRY CRASH ANYTIME
holds        states    fence
holds        states    fence    BACK LOSSES=0
holds        states    fence    ROLLBACK
not-rising   states    fence    AHEAD
not-rising   states    fence    WHOLE
not-rising   states    fence    BACK
not-rising   states    fence    PLAIN
not-rising   states    fence    ROLLBACK QUICK
holds        states    record   LOSE LATE CRASH FAIL LAPSE DROP
holds        states    record   LOSE LATE CRASH FAIL LAPSE DROP REJECT
holds        states    record   LOSE LATE LAPSE=2 DROP=2
holds        states    record   BLAME LOSE CRASH FAIL LAPSE DROP REJECT
holds        states    record   BLAME LOSE LATE CRASH LAPSE REJECT REQUESTS=1
reached      states    record   CRASH REACH=1
reached      states    record   DROP REACH=2
reached      states    record   CRASH REJECT REACH=3
reached      states    record   LATE REACH=4
reached      states    record   CRASH FAIL REACH=5
two-holders  states    record   NOLOCK
two-holders  states    record   RETAKE LATE
two-answers  states    record   SAMETOKEN LATE REJECT
two-answers  states    record   RESTORE LAPSE DROP=2
blamed       states    record   ERASE BLAME LATE REJECT REQUESTS=1
blamed       states    record   BLAME LATE REJECT
forgotten    states    record   FORGET CRASH FAIL
'
large='
holds        states    handoff  LOSE LATE LEAVE
holds        states    handoff  LOSE LATE LEAVE TRYING
holds        states    handoff  LOSE LATE LEAVE NOREFUSE
holds        states    handoff  LOSE LATE DEAF LEAVE
holds        states    handoff  LOSE LATE LEAVE FOREIGN GHOST
holds        states    handoff  LOSE SLOW CRASH FOREIGN GHOST
holds        states    handoff  LOSE LEAVE REJOIN CRASH
holds        states    handoff  LOSE LATE REJOIN
holds        states    handoff  LATE SLOW REJOIN
holds        states    handoff  LOSE LEAVE FOREIGN WIPE
holds        states    handoff  LATE LEAVE CRASH WIPE
holds        states    handoff  LOSE LATE CRASH PROCESSES=2 EPISODES=2
holds        states    handoff  FORGE=2 LATE PROCESSES=2 EPISODES=2
holds        states    handoff  FORGE LOSE LATE LEAVE REJOIN PROCESSES=2
holds        states    handoff  LATE LEAVE REJOIN PROCESSES=2 EPISODES=2
holds        states    handoff  LOSE LATE DEAF SLOW LEAVE REJOIN CRASH FOREIGN GHOST PROCESSES=2
holds        progress  handoff  LOSE DEAF LEAVE ANYTIME
holds        progress  handoff  LATE LEAVE FOREIGN ANYTIME
holds        progress  handoff  LOSE LATE REJOIN ANYTIME PROCESSES=2
holds        progress  handoff  LATE SLOW CRASH ANYTIME PROCESSES=2 EPISODES=2
holds        states    record   LOSE=2 LATE=2 CRASH FAIL LAPSE=2 DROP=2
holds        states    record   LOSE LATE CRASH FAIL LAPSE DROP REQUESTS=3
holds        states    record   LOSE LATE LAPSE DROP PROCESSES=3
holds        states    record   LOSE LATE FAIL LAPSE=2 DROP=2 PROCESSES=3 REQUESTS=1
holds        states    record   BLAME LOSE=2 CRASH FAIL LAPSE DROP REJECT REQUESTS=3
'

# verdict says what pan found. An error counts only by its first line; without one the search must have been complete.
verdict() {
  local error
  error=$(grep -m 1 '^pan:1:' "$1" || true)
  case $error in
    *'assertion violated'*'holding['* | *'assertion violated'*'valid['*) echo two-holders ;;
    *'assertion violated'*'(key==turn)'*) echo out-of-turn ;;
    *'assertion violated'*'(key==200)'*) echo damaged ;;
    *'assertion violated'*'>issued)'*) echo not-rising ;;
    *'assertion violated'*'(answer=='*) echo two-answers ;;
    *'assertion violated'*'over['*) echo blamed ;;
    *'assertion violated'*'fallen'*) echo forgotten ;;
    *'assertion violated ('[1-9]'!='[1-9]')'*) echo reached ;;
    *'invalid end state'*) echo stranded ;;
    *'non-progress cycle'*) echo no-progress ;;
    '')
      if grep -q 'errors: 0$' "$1" && ! grep -qiE 'search depth too small|not completed|^error|out of memory' "$1"; then
        echo holds
      else
        echo incomplete
      fi
      ;;
    *) echo "${error#pan:1: }" ;;
  esac
}

# search builds one model and searches it, in a directory of its own.
search() {
  local expected=$1 how=$2 model=$3 got result word
  shift 3
  local words=() build=(-w "$optimize" -DCOLLAPSE -DMEMLIM=1900) run=(-m10000)
  for word in "$@"; do
    grep -qw "${word%=*}" "$here/$model.pml" || { echo "$model.pml knows no $word" && exit 1; }
    [[ $word == *=* ]] || word+="=1"
    words+=("-D$word")
  done
  if [[ $how == progress ]]; then
    build+=(-DNP -DNFAIR=3)
    run+=(-l -f)
  else
    build+=(-DSAFETY)
  fi

  cd "$(mktemp -d -p "$work")"
  spin -a "${words[@]}" "$here/$model.pml"
  gcc "${build[@]}" -o pan pan.c
  ./pan "${run[@]}" >out 2>&1 || true
  got=$(verdict out)
  result=ok
  [[ $got == "$expected" ]] || result="WRONG, $expected was expected:"
  echo "$result" >>"$work/results"
  printf '%s %-11s %9s states  %s\n' "$result" "$got" \
    "$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' out)" "$model${*:+ $*}"
}

rows=$quick
optimize=-O0 # for short searches it is the building that takes time
if [[ ${1-} == -full ]]; then
  rows+=$large
  optimize=-O2
fi

if ! command -v spin >/dev/null; then
  apt-get update -qq
  apt-get install -y -qq spin >/dev/null
fi
spin -V
work=$(mktemp -d)
: >"$work/results"
trap 'rm -rf "$work"' EXIT

expected=0
while read -r -a row; do
  [[ ${#row[@]} -gt 0 ]] || continue
  expected=$((expected + 1))
  while [[ $(jobs -rp | wc -l) -ge 2 ]]; do wait -n || true; done
  search "${row[@]}" &
done <<<"$rows"
wait

right=$(grep -cx ok "$work/results" || true)
echo "$right of $expected came out as expected, in $SECONDS s"
[[ $right -eq $expected ]]
