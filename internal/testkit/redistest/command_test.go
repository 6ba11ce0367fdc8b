package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadCommand(t *testing.T) {
	t.Parallel()
	// A pipeline in pieces; the value looks like protocol itself.
	const pipeline = "*3\r\n$3\r\nset\r\n$1\r\nk\r\n$6\r\n*1\r\n$1\r\n" + "*0\r\n" + "*1\r\n$4\r\nPING\r\n"
	reader := bufio.NewReader(iotest.OneByteReader(strings.NewReader(pipeline)))

	var read bytes.Buffer
	for _, want := range [][]string{{"SET", "k", "*1\r\n$1"}, nil, {"PING"}} {
		command, data, err := readCommand(reader)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(command, want) {
			t.Errorf("got %q, want %q", command, want)
		}
		read.Write(data)
	}
	if read.String() != pipeline {
		t.Errorf("forwards %q, want %q", read.String(), pipeline)
	}
	if _, _, err := readCommand(reader); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want %v", err, io.EOF)
	}
}

func TestReadCommandFails(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]error{
		"PING\r\n":                 errMalformed, // inline
		"*1\r\n:1\r\n":             errMalformed,
		"*1\r\n$-1\r\n":            errMalformed,
		"*1\r\n$2\r\nPING\r\n":     errMalformed,
		"*1\r\n$x\r\n":             errMalformed,
		"*9999999\r\n":             errMalformed,
		"*":                        io.ErrUnexpectedEOF,
		"*1\r\n":                   io.ErrUnexpectedEOF,
		"*1\r\n$4\r\nPI":           io.ErrUnexpectedEOF,
		"*2\r\n$4\r\nPING\r\n$1":   io.ErrUnexpectedEOF,
		"*2\r\n$4\r\nPING\r\n":     io.ErrUnexpectedEOF,
		"*1\r\n$4\r\nPING\r":       io.ErrUnexpectedEOF,
		"*1\r\n$4\r\nPING\r\r\n":   errMalformed,
		"*1\r\n$4\r\nPINGxx\r\n":   errMalformed,
		"*1\n$4\r\nPING\r\n":       errMalformed,
		"*-2\r\n$4\r\nPING\r\n":    errMalformed,
		"\r\n*1\r\n$4\r\nPING\r\n": errMalformed,
	} {
		if _, _, err := readCommand(bufio.NewReader(strings.NewReader(input))); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", input, err, want)
		}
	}
}
