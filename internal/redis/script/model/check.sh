#!/usr/bin/env bash
# Checks the models: it runs the searches of rows.txt, two at a time, and prints a line for each.
#
#   ./check.sh         the small searches, except those with a kept result: three to six minutes, under 1 GB
#   ./check.sh -all    all searches, the large ones too: an hour, under 4 GB
#
# It fails if a search does not end as rows.txt expects. Otherwise it writes the results to checked.txt. A result counts as
# long as the model does not change; comments do not count as a change. It fails, too, if a large search has no result and
# does not run: so a change of a model needs a run of all searches. It needs gcc. Where spin is missing, it needs a
# Debian on which it may install spin.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
here=$PWD
kept=$here/checked.txt

# verdict names the result in the output of a search. Of an error, the first line decides. A search without an error must be complete.
verdict() {
  local error
  error=$(grep -m 1 '^pan:1:' "$1" || true)
  case $error in
    *'assertion violated'*'current[2]!=0'*) echo behind-dead ;;
    *'assertion violated'*'||(0==99)'*) echo shortened ;;
    *'assertion violated (q_len(queue)==0)'*) echo out-of-turn ;;
    *'assertion violated'*'==199)'*'room==0'* | *'assertion violated'*'!=199)'*'room==0'*) echo not-granted ;;
    *'assertion violated'*'holding['* | *'assertion violated'*'valid['*) echo two-holders ;;
    *'assertion violated'*'(key==next)'*) echo out-of-turn ;;
    *'assertion violated'*'(key==200)'*) echo damaged ;;
    *'assertion violated'*'>issued)'*) echo not-rising ;;
    *'assertion violated'*'(answer=='*) echo two-answers ;;
    *'assertion violated'*'ended['*) echo false-death ;;
    *'assertion violated'*'interrupted'*) echo hidden-death ;;
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

# search builds one model and searches it, in a folder of its own. Only large searches gain from an optimized build.
search() {
  local size=$1 expected=$2 how=$3 model=$4 got states option result=ok
  shift 4
  local options=() build=(-w -O0 -DCOLLAPSE -DMEMLIM=1900) run=(-m10000)
  [[ $size == small ]] || build[1]=-O2
  for option in "$@"; do
    grep -qw "${option%=*}" "$here/$model.pml" || { echo "$model.pml has no option $option" && exit 1; }
    [[ $option == *=* ]] || option+="=1"
    options+=("-D$option")
  done
  if [[ $how == progress ]]; then
    build+=(-DNP -DNFAIR=3)
    run+=(-l -f)
  else
    build+=(-DSAFETY)
  fi

  cd "$(mktemp -d -p "$work")"
  spin -a "${options[@]}" "$here/$model.pml" >/dev/null
  gcc "${build[@]}" -o pan pan.c
  ./pan "${run[@]}" >out 2>&1 || true
  got=$(verdict out)
  states=$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' out)
  if [[ $got == "$expected" ]]; then
    line "$(model_hash "$model")" "$states" "$size" "$expected" "$how" "$model" "$@" >>"$work/right"
  else
    result="WRONG, $expected was expected:"
  fi
  printf '%s %-12s %9s states  %s\n' "$result" "$got" "$states" "$model${*:+ $*}"
  rm -f pan*
}

# line prints a line of checked.txt: the hash of the model, the number of states, and the row.
line() {
  local hash=$1 states=$2
  shift 2
  echo "$hash ${states:-0} $*"
}

# model_hash identifies a model and the way in which this script searches it, both without comments.
model_hash() {
  { gcc -w -fpreprocessed -dD -E -P -x c "$here/$1.pml" && sed -n '/^\(verdict\|search\)() /,/^}/p' "$here/check.sh"; } |
    tr -s '[:space:]' ' ' | sha256sum | cut -c1-16
}

# kept_line prints the line of checked.txt for a row of the model as it is now. It fails if there is none.
kept_line() {
  local hash
  hash=$(model_hash "$4")
  awk -v hash="$hash" -v row="$*" '$1 == hash { line = $0; sub(/^[^ ]+ [^ ]+ /, ""); if ($0 == row) { print line; found = 1; exit } }
    END { exit !found }' "$kept" 2>/dev/null
}

case ${1-} in
  '' | -all) ;;
  *) sed -nE '2,${/^#/!q; s/^# ?//p}' check.sh >&2 && exit 2 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/right"

expected=0
stale=0
todo=()
while read -r -a row; do
  [[ ${#row[@]} -gt 0 && ${row[0]} != '#' ]] || continue
  expected=$((expected + 1))
  if [[ ${1-} == '' ]] && kept_line "${row[@]}" >>"$work/right"; then
    continue
  elif [[ ${1-} == '' && ${row[0]} == large ]]; then
    stale=$((stale + 1)) # a new result needs -all
  else
    todo+=("${row[*]}")
  fi
done <"$here/rows.txt"
echo "$(wc -l <"$work/right") results are kept in checked.txt, ${#todo[@]} searches to run"

if [[ ${#todo[@]} -gt 0 ]]; then
  if ! command -v spin >/dev/null; then
    apt-get update -qq
    apt-get install -y -qq spin >/dev/null
  fi
  spin -V
fi
for row in "${todo[@]}"; do
  while [[ $(jobs -rp | wc -l) -ge 2 ]]; do wait -n || true; done
  read -r -a row <<<"$row"
  search "${row[@]}" &
done
wait

right=$(wc -l <"$work/right")
if [[ $right -ne $((expected - stale)) ]]; then
  echo "WRONG: $((expected - stale - right)) of ${#todo[@]} searches" >&2
  exit 1
fi
if [[ ${#todo[@]} -gt 0 ]]; then
  {
    echo "# Written by check.sh: for each search of rows.txt that came out as expected, the hash of its model, the number"
    echo "# of states that were searched (up to the first error, where one is expected), and the row."
    while read -r -a row; do
      [[ ${#row[@]} -gt 0 && ${row[0]} != '#' ]] || continue
      awk -v row="${row[*]}" '{ line = $0; sub(/^[^ ]+ [^ ]+ /, ""); if ($0 == row) print line }' "$work/right"
    done <"$here/rows.txt"
  } >"$work/checked.txt"
  mv "$work/checked.txt" "$kept"
fi
echo "$right of $expected searches are as expected, in $SECONDS s"
if [[ $stale -ne 0 ]]; then
  echo "$stale large searches have no result for the models as they are: run check.sh -all" >&2
  exit 1
fi
