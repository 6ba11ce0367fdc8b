package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// replies are complete replies, one of each kind and some nested ones.
func replies() map[string]string {
	return map[string]string{
		"simple string":    "+OK\r\n",
		"empty string":     "+\r\n",
		"error":            "-ERR no\r\n",
		"integer":          ":-42\r\n",
		"bulk":             "$5\r\na\r\nbc\r\n",
		"empty bulk":       "$0\r\n\r\n",
		"null bulk":        "$-1\r\n",
		"array":            "*3\r\n:1\r\n$1\r\na\r\n+b\r\n",
		"empty array":      "*0\r\n",
		"null array":       "*-1\r\n",
		"nested":           "*2\r\n*2\r\n:1\r\n*1\r\n:2\r\n%1\r\n+k\r\n~1\r\n:3\r\n",
		"null":             "_\r\n",
		"double":           ",3.14\r\n",
		"infinity":         ",-inf\r\n",
		"boolean":          "#t\r\n",
		"big number":       "(3492890328409238509324850943850943825024385\r\n",
		"bulk error":       "!7\r\nERR bad\r\n",
		"verbatim":         "=6\r\ntxt:hi\r\n",
		"map":              "%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n",
		"empty map":        "%0\r\n",
		"set":              "~2\r\n:1\r\n:2\r\n",
		"push":             ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n",
		"attribute":        "|1\r\n+ttl\r\n:3600\r\n$1\r\nv\r\n",
		"two attributes":   "|1\r\n+a\r\n*1\r\n:1\r\n|0\r\n:2\r\n",
		"inner attribute":  "*2\r\n|1\r\n+a\r\n:1\r\n:2\r\n:3\r\n",
		"attribute of map": "|1\r\n+a\r\n:1\r\n%1\r\n+k\r\n+v\r\n",
	}
}

// malformed are bytes that can never become a reply.
func malformed() map[string]string {
	return map[string]string{
		"unknown type":     "?\r\n",
		"empty line":       "\r\n",
		"no carriage":      "+OK\n",
		"bulk too short":   "$4\r\nabc\r\n+x\r\n",
		"bulk too long":    "$1\r\nabc\r\n",
		"bad count":        "$x\r\n",
		"negative count":   "*-2\r\n",
		"huge bulk":        "$99999999999\r\n",
		"huge array":       "*9223372036854775807\r\n",
		"nested too often": strings.Repeat("%1099511627776\r\n", 2),
		"push in array":    "*1\r\n>1\r\n+a\r\n",
		"streamed string":  "$?\r\n",
	}
}

func TestSkipReply(t *testing.T) {
	t.Parallel()
	for name, reply := range replies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Byte by byte, and with another reply behind it.
			source := iotest.OneByteReader(strings.NewReader(reply + "+next\r\n"))
			reader := bufio.NewReader(source)
			for _, want := range []string{reply, "+next\r\n"} {
				var raw bytes.Buffer
				kind, err := skipReply(reader, &raw)
				if err != nil {
					t.Fatal(err)
				}
				if raw.String() != want {
					t.Errorf("got %q, want %q", raw.String(), want)
				}
				if push := kind == pushType; push != strings.HasPrefix(want, ">") {
					t.Errorf("kind of %q is %q", want, kind)
				}
			}
			if _, err := skipReply(reader, new(bytes.Buffer)); !errors.Is(err, io.EOF) {
				t.Errorf("at the end: got %v, want %v", err, io.EOF)
			}
		})
	}
}

func TestSkipReplyCutShort(t *testing.T) {
	t.Parallel()
	for name, reply := range replies() {
		for end := 1; end < len(reply); end++ {
			_, err := skipReply(bufio.NewReader(strings.NewReader(reply[:end])), new(bytes.Buffer))
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: %q: got %v, want %v", name, reply[:end], err, io.ErrUnexpectedEOF)
			}
		}
	}
}

func TestSkipReplyMalformed(t *testing.T) {
	t.Parallel()
	for name, reply := range malformed() {
		_, err := skipReply(bufio.NewReader(strings.NewReader(reply)), new(bytes.Buffer))
		if !errors.Is(err, errMalformed) {
			t.Errorf("%s: got %v, want %v", name, err, errMalformed)
		}
	}
}

func FuzzSkipReply(f *testing.F) {
	for _, corpus := range []map[string]string{replies(), malformed()} {
		for _, reply := range corpus {
			f.Add([]byte(reply))
			f.Add([]byte(reply + reply))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		reader := bufio.NewReader(bytes.NewReader(data))
		var raw bytes.Buffer
		kind, err := skipReply(reader, &raw)
		rest, _ := io.ReadAll(reader)

		// Nothing is lost, changed or read ahead, whether it was a reply or not.
		if got := append(bytes.Clone(raw.Bytes()), rest...); !bytes.Equal(got, data) {
			t.Fatalf("%q became %q", data, got)
		}
		if err != nil {
			if kind != 0 {
				t.Fatalf("%q: kind %q with error %v", data, kind, err)
			}
			return
		}
		// What was taken for a reply is one when read on its own, and nothing
		// shorter is.
		var again bytes.Buffer
		kindAgain, err := skipReply(bufio.NewReader(bytes.NewReader(raw.Bytes())), &again)
		if err != nil || kindAgain != kind || !bytes.Equal(again.Bytes(), raw.Bytes()) {
			t.Fatalf("%q: %q, then %q (%v)", data, raw.Bytes(), again.Bytes(), err)
		}
		short := raw.Bytes()[:raw.Len()-1]
		if _, err := skipReply(bufio.NewReader(bytes.NewReader(short)), new(bytes.Buffer)); err == nil {
			t.Fatalf("%q is a reply without its end", short)
		}
	})
}
