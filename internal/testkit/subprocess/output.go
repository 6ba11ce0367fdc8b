package subprocess

import (
	"bytes"
	"strings"
	"sync"
)

// An output holds what a process has written. It is safe for concurrent use.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer // without reports
	reports map[string]int
}

// Output returns what the process has written so far, without its reports.
func (o *output) Output() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Reports returns how many times the process has reported this line.
func (o *output) Reports(line string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reports[line]
}

// ReportAfter returns the rest of a reported line that starts with the word and a space,
// and whether there is one. It is for a word that is reported once.
func (o *output) ReportAfter(word string) (rest string, found bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for line := range o.reports {
		if rest, found := strings.CutPrefix(line, word+" "); found {
			return rest, true
		}
	}
	return "", false
}

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) addLine(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if report, found := strings.CutPrefix(line, reportMark); found {
		o.reports[strings.TrimSuffix(report, "\n")]++
		return
	}
	o.text.WriteString(line)
}

// A lineWriter splits the standard output of a process into lines. A last line without a
// newline is left out: no report ends so.
type lineWriter struct {
	output *output
	rest   []byte
}

// Write implements io.Writer.
func (w *lineWriter) Write(text []byte) (int, error) {
	w.rest = append(w.rest, text...)
	for {
		end := bytes.IndexByte(w.rest, '\n') + 1
		if end == 0 {
			return len(text), nil
		}
		w.output.addLine(string(w.rest[:end]))
		w.rest = w.rest[end:]
	}
}
