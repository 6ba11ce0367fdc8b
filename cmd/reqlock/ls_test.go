package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestLsListsWhatIsHeld(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	one, other := newLocker(t, rdb), newLocker(t, rdb)
	o.run(t, "ls").want(t, exitOK, "reqlock: no locks\n")
	held := must(one.Lock(t.Context(), "account:42"))(t)
	must(one.Lock(t.Context(), "account:43"))(t)
	must(other.Lock(t.Context(), "a:0"))(t)
	alone := must(other.Lock(t.Context(), "user:1"))(t)
	wait(t, o, other, "account:42")
	if err := rdb.RPush(t.Context(), "{reqlock:user:1}:q", strings.Repeat("0", 32)+":1", strings.Repeat("0", 32)+":2").Err(); err != nil {
		t.Fatal(err)
	}
	v := lines[lockView](t, o.run(t, "show", "account:42", "--json"))[0]
	register(t, rdb, processOf(held), v)
	for args, want := range map[string]string{
		"":                                  "a:0 account:42 account:43 user:1",
		"--match account:*":                 "account:42 account:43",
		"--waiting 2":                       "user:1",
		"--process " + processOf(held)[:8]:  "account:42 account:43",
		"--match=account:* --process=00000": "",
		"--sort held":                       "account:42 a:0 account:43 user:1",
		"--sort waiting --match *:*":        "user:1 account:42 a:0 account:43",
	} {
		words := append([]string{"ls", "--json"}, strings.Fields(args)...)
		var keys []string
		for _, v := range lines[lockView](t, o.run(t, words...)) {
			keys = append(keys, v.Key)
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("ls %s: %s, want %s", args, got, want)
		}
	}
	r := o.run(t, "ls", "--match", "account:*").want(t, exitOK)
	var rows []string
	for line := range strings.Lines(r.out) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	id := processOf(held)[:8]
	if len(rows) != 3 || rows[0] != "KEY PROCESS INSTANCE HELD LEFT WAITING WHERE" || !strings.HasPrefix(rows[1], "account:42 "+id+` payments "pod-2\x1b[31m":7 1m`) ||
		!strings.HasSuffix(rows[1], " 1 bank/transfer.go:42") || !strings.HasPrefix(rows[2], "account:43 "+id+` payments "pod-2\x1b[31m":7 - `) || !strings.HasSuffix(rows[2], " 0 -") || r.problems != "reqlock: 1 lease has no time: a process reports only its 20 longest\n" {
		t.Errorf("%s%s", r.out, r.problems)
	}
	o.run(t, "ls", "--match=user:*").want(t, exitOK, processOf(alone)[:8]+"  silent    -     ")
	r = o.run(t, "ls", "--limit", "2").want(t, exitOK, "reqlock: the list is cut short after 2 locks: about ")
	if strings.Count(r.out, "\n") != 3 {
		t.Errorf("--limit 2:\n%s", r.out)
	}
}

// hostile are keys that other programs may have set: their types and texts must change nothing.
func hostile(t *testing.T, rdb redis.UniversalClient) (texts []string) {
	t.Helper()
	ctx := t.Context()
	texts = []string{"\x1b[31mred", "<script>alert(1)</script>", "a\tb\nc", "c1\u009b2J", "bidi\u202e", "bad\xffutf8", "del\x7f", `"quoted"`, " space"}
	for _, text := range texts {
		if err := rdb.Set(ctx, "reqlock:"+text, text, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		rdb.RPush(ctx, "reqlock:list", "x").Err(),
		rdb.HSet(ctx, "reqlock:hash", "s", "R").Err(),
		rdb.Set(ctx, "{reqlock:string}:r", "x", 0).Err(),
		rdb.Set(ctx, "{reqlock:i:odd\x1b[1m}:r", storetest.EncodeRecord(map[string]string{"s": "R", "t": "\x1b[1m:1", "n": "1", "f": "\x1b[1m", "r": "\x1b[1m"}), 0).Err(),
		rdb.HSet(ctx, "{reqlock:i:hash\x1b[1m}:r", "s", "\x1b[1m").Err(),
		rdb.HSet(ctx, "{reqlock:process:"+strings.Repeat("0", 32)+"}:p", "host", "\x1b[1m").Err(),
		rdb.Set(ctx, "{reqlock:process:"+strings.Repeat("1", 32)+"}:p", "x", 0).Err(),
		rdb.Set(ctx, "{reqlock:a}:q", "no list", 0).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return texts
}

func TestKeysOfOtherProgramsAreQuoted(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	texts := hostile(t, rdb)
	for _, args := range [][]string{{"ls"}, {"outcomes", "ls", "--state", "all"}, {"processes"}, {"doctor"}} {
		for _, more := range []string{"--digest", "--json", "--limit=100"} {
			r := o.run(t, append(args, more)...)
			for _, character := range []string{"\x1b", "\u009b", "\u202e", "\xff", "\x7f", "\r"} {
				if strings.Contains(r.out+r.problems, character) {
					t.Errorf("%q %s prints %q:\n%s", args, more, character, r.out)
				}
			}
			if r.status != exitOK {
				t.Errorf("%q %s: status %d\n%s", args, more, r.status, r.problems)
			}
		}
	}
	r := o.run(t, "ls").want(t, exitOK, "<script>alert(1)</script>  foreign", `"\x1b[31mred"`, `"bad\xffutf8"`, `" space"`)
	if rows := strings.Count(r.out, "\n"); rows != len(texts)+1 {
		t.Errorf("%d rows:\n%s", rows, r.out)
	}
	found := make(map[string]bool)
	for _, v := range lines[lockView](t, o.run(t, "ls", "--json")) {
		found[v.Key] = true
	}
	for _, text := range texts {
		if !found[text] && text != "bad\xffutf8" {
			t.Errorf("--json lacks %q", text)
		}
		o.run(t, "show", text).want(t, exitOK, "foreign")
		o.run(t, "free", text).want(t, exitError, "held by no process of reqlock")
	}
	o.run(t, "show", "list").want(t, exitNotFound)
	o.run(t, "outcomes", "show", "string").want(t, exitNotFound)
}

// A list of many holders asks for each process once.
func TestLsFindsManyProcesses(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	for n := range maxHolders + 20 {
		id := strings.Repeat("0", 28) + strconv.Itoa(1000+n)
		if err := rdb.Set(t.Context(), "reqlock:k"+strconv.Itoa(n), id+":1", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		register(t, rdb, id, lockView{})
	}
	r := o.run(t, "ls").want(t, exitOK)
	if n := strings.Count(r.out, "payments"); n != maxHolders {
		t.Errorf("%d processes are found\n%s", n, r.out)
	}
	if strings.Contains(r.out, "silent") { // nobody has looked
		t.Errorf("a registered process is silent:\n%s", r.out)
	}
}
