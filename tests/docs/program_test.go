package docs_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A session is a program of a page, a command that a reader types while it runs, and what the
// command prints.
type session struct {
	line          int    // of the command in the page
	program       string // with the snippets between it and the command
	command, text string
}

// fence matches a block of code: its language and its text.
var fence = regexp.MustCompile("(?m)^```(\\w*)\n((?s:.*?))^```$")

// sessions returns the sessions of a page. A command without a text below it is none.
func sessions(text string) (found []session) {
	var program, snippets, command string
	line := 0
	for _, at := range fence.FindAllStringSubmatchIndex(text, -1) {
		language, code := text[at[2]:at[3]], text[at[4]:at[5]]
		switch {
		case language == "go" && strings.HasPrefix(code, "package "):
			program, snippets, command = code, "", ""
		case language == "go":
			snippets, command = snippets+code, ""
		case language == "sh" && program != "":
			command, line = code, 1+strings.Count(text[:at[4]], "\n")
		case language == "text" && command != "":
			found = append(found, session{line: line, program: changed(program, snippets), command: command, text: code})
			command = ""
		}
	}
	return found
}

// variable finds the variable that a snippet declares first.
var variable = regexp.MustCompile(`^\w+ := `)

// changed returns a program with the snippets that follow it in a page. A snippet that declares a
// variable of the program replaces that declaration. Any other one stands where the program begins
// to serve.
func changed(program, snippets string) string {
	if declared := "\n\t" + variable.FindString(snippets); declared != "\n\t" {
		if before, after, ok := strings.Cut(program, declared); ok {
			_, after, _ = strings.Cut(after, "\n")
			return before + "\n" + snippets + after
		}
	}
	const serve = "log.Fatal(http.Listen"
	return strings.Replace(program, serve, snippets+serve, 1)
}

func TestCommandsPrintWhatThePageSays(t *testing.T) {
	suite.Full(t, "builds each program")
	t.Parallel()
	for page, want := range map[string]int{
		"README.md": 2, "docs/getting-started.md": 2,
		"docs/getting-started-gin.md": 1, "docs/getting-started-echo.md": 1, "docs/getting-started-grpc.md": 1,
	} {
		all := sessions(read(t, page))
		if len(all) != want {
			t.Errorf("%s has %d commands with their output, want %d", page, len(all), want)
		}
		for _, s := range all {
			t.Run(fmt.Sprintf("%s:%d", page, s.line), func(t *testing.T) {
				t.Parallel()
				address := start(t, s.program)
				if strings.HasPrefix(s.command, "grpcurl ") {
					wantRefusedTransfer(t, address, s.text)
					return
				}
				if _, err := exec.LookPath("curl"); err != nil {
					suite.SkipOrFail(t, "%v", err)
				}
				shell := exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(s.command, "localhost:8080", address))
				out, err := shell.Output()
				if err != nil {
					t.Fatal(err)
				}
				if got, want := comparable(string(out)), comparable(s.text); got != want {
					t.Errorf("the command prints\n%s\nand the page says\n%s", got, want)
				}
			})
		}
	}
}

// start builds a program and runs it on a free port and an embedded Redis until the test ends. It returns the
// address on which the program listens.
func start(t *testing.T, program string) string {
	t.Helper()
	port, err := redistest.FreePort(t)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	program = strings.ReplaceAll(program, "localhost:8080", address)
	program = strings.ReplaceAll(program, "localhost:6379", miniredis.RunT(t).Addr())
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s", "-o", binary, filepath.Join(dir, "main.go"))
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), binary) // which ends the program with the test
	run.Env = append(os.Environ(), "REDIS_URL=")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait()
	})
	suite.Eventually(t, "the program listens", func() bool {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return address
}

// changes are the parts of an output that differ from run to run, except times of day.
var changes = regexp.MustCompile(`(?m)^(Date|Content-Length): .*\n|\r`)

// comparable returns what each run prints.
func comparable(output string) string {
	output = strings.TrimSpace(changes.ReplaceAllString(output, ""))
	for i, time := range regexp.MustCompile(`\d\d:\d\d:\d\d`).FindAllString(output, -1) {
		output = strings.ReplaceAll(output, time, fmt.Sprint("TIME ", i)) // the same for the same time
	}
	return output
}
