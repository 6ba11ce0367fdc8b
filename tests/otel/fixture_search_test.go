package oteltest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/reqlock/reqlock/core"
)

// A place is where something of the process can be read from outside.
type place string

const (
	inNames   place = "the names of keys in Redis"
	inValues  place = "the values in Redis"
	onWire    place = "the connections to Redis"
	inLog     place = "the log"
	inServer  place = "the log of net/http" // of its http.Server, and not of reqlock
	inSpans   place = "spans"
	inMetrics place = "metrics"
	inAnswers place = "answers of handlers"
	inRefusal place = "refusals"
	inErrors  place = "errors and panics"
	inPrinted place = "what package fmt, JSON and slog print"
	inNested  place = "what package fmt prints of unexported fields"
)

// places are all places.
func places() []place {
	return []place{inNames, inValues, onWire, inLog, inServer, inSpans, inMetrics, inAnswers, inRefusal, inErrors, inPrinted, inNested}
}

// A secret is a text that must be nowhere but in the places where it may be.
type secret struct {
	what, text string
	may        []place
}

// A search keeps all texts of all places. It is safe for concurrent use.
type search struct {
	mu    sync.Mutex
	texts map[place]*strings.Builder
}

// add keeps a text.
func (s *search) add(in place, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts == nil {
		s.texts = make(map[place]*strings.Builder)
	}
	if s.texts[in] == nil {
		s.texts[in] = new(strings.Builder)
	}
	s.texts[in].WriteString(text + "\n")
}

// writer returns an io.Writer to the place.
func (s *search) writer(to place) writerTo { return writerTo{s, to} }

type writerTo struct {
	*search
	to place
}

func (w writerTo) Write(p []byte) (int, error) {
	w.add(w.to, string(p))
	return len(p), nil
}

// has reports whether a place has a secret in any form.
func (s *search) has(in place, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts[in] != nil && slices.ContainsFunc(forms(text), func(form string) bool { return strings.Contains(s.texts[in].String(), form) })
}

// findings returns where secrets are and may not be, and where they may be and are not: there the search
// would be blind.
func (s *search) findings(secrets []secret) (found []string) {
	for _, secret := range secrets {
		for _, in := range places() {
			switch has, may := s.has(in, secret.text), slices.Contains(secret.may, in); {
			case has && !may:
				found = append(found, fmt.Sprintf("%s: found in %s", secret.what, in))
			case may && !has:
				found = append(found, fmt.Sprintf("%s: not found in %s", secret.what, in))
			}
		}
	}
	return found
}

// forms returns a text as it may be written: as it is, escaped, and as bytes in hex, in base64 and as package
// fmt prints them.
func forms(text string) []string {
	bytes := []byte(text)
	all := []string{
		text, url.QueryEscape(text), url.PathEscape(text), hex.EncodeToString(bytes), strings.ToUpper(hex.EncodeToString(bytes)),
		strings.Trim(fmt.Sprint(bytes), "[]"), strings.Trim(strings.TrimPrefix(fmt.Sprintf("%#v", bytes), "[]byte"), "{}"),
	}
	for before, first := range []int{0, 2, 3} { // the text begins at another bit of a character of base64
		encoded := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), bytes...))
		inner := encoded[first : (before+len(bytes))*8/6]
		all = append(all, inner, strings.NewReplacer("+", "-", "/", "_").Replace(inner))
	}
	return all
}

// print keeps what is printed of values: by each verb, as JSON, in lines of the log, and from a field that is not
// exported, where package fmt cannot call methods.
func (s *search) print(values ...any) {
	logger := slog.New(slog.NewTextHandler(s.writer(inPrinted), nil))
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			s.add(inPrinted, fmt.Sprintf(verb, value))
			s.add(inNested, fmt.Sprintf(verb, struct{ value any }{value}))
		}
		text, err := json.Marshal(value)
		s.add(inPrinted, fmt.Sprint(string(text), err))
		logger.Info("printed", "value", value)
	}
}

// fail keeps what is printed of an error and of all errors in it, and what a client would get.
func (s *search) fail(err error) {
	if err == nil {
		return
	}
	if refusal, ok := core.RefusalOf(err); ok {
		s.add(inRefusal, fmt.Sprintf("%+v", refusal))
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%q"} {
		s.add(inErrors, fmt.Sprintf(verb, err))
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			s.fail(one)
		}
		return
	}
	s.fail(errors.Unwrap(err))
}

// panics keeps the panic of a function.
func (s *search) panics(function func()) (text string) {
	defer func() {
		text = fmt.Sprint(recover())
		s.add(inErrors, text)
	}()
	function()
	return ""
}

// see is an observer that keeps what is printed of events.
func (s *search) see(e core.Event) {
	s.print(e, e.Key, e.Attempt)
	s.fail(e.Err)
}
