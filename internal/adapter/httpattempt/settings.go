package httpattempt

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/answer"
)

// KeyHeader is the header of the idempotency key, which a refusal of a request without a
// key names.
const KeyHeader = "Idempotency-Key"

// Settings are the options of Idempotent, for an adapter whose requests have the type R.
// The zero Settings are the defaults.
type Settings[R any] struct {
	// Methods are idempotent by key. nil means POST and PATCH.
	Methods []string
	// OptionalKey are headers. A request without any of them runs without a key. nil means
	// that the key is required.
	OptionalKey []string
	// Fingerprint is the application's function. nil means the function Fingerprint.
	Fingerprint func(R) ([]byte, error)
	// MaxBody is the maximum number of bytes of a body that is read for the fingerprint. 0
	// means 1 MiB.
	MaxBody int64
	// Unknown reports whether a failed handler leaves the outcome unknown. nil means that
	// the outcome is unknown after a panic, after a failure without a status, by the end of a
	// context or with a body that broke off, and after a status of answer.Unknown that Stored
	// does not store.
	Unknown func(core.Failure) bool
	// Stored reports whether an answer of the status is stored. nil means answer.Storable.
	Stored func(status int) bool
	// ReplayedHeaders are replayed in addition to the headers that answer.Filter selects.
	ReplayedHeaders []string

	custom bool // Unknown or Stored was set
}

// complete checks the settings and sets the defaults.
func (s *Settings[R]) complete(a registration.Adapter) error {
	if err := s.completeMethods(a); err != nil {
		return err
	}
	if slices.Contains(s.OptionalKey, "") {
		return fmt.Errorf("reqlock: %s: the header of an optional key has no name", a)
	}
	if s.MaxBody < 0 {
		return fmt.Errorf("reqlock: %s: the limit of a body is %d bytes, below 1", a, s.MaxBody)
	}
	for _, name := range s.ReplayedHeaders {
		if answer.NeverReplayed(name) {
			return fmt.Errorf("reqlock: %s: the header %q is never replayed", a, name)
		}
	}
	if s.MaxBody == 0 {
		s.MaxBody = httpkey.DefaultMaxBody
	}
	s.custom = s.Unknown != nil || s.Stored != nil
	if s.Stored == nil {
		s.Stored = answer.Storable
	}
	return nil
}

// completeMethods checks the methods, and converts them to upper case.
func (s *Settings[R]) completeMethods(a registration.Adapter) error {
	if s.Methods == nil {
		s.Methods = defaultMethods()
	}
	var methods []string
	for _, method := range s.Methods {
		method = strings.ToUpper(method)
		switch method {
		case "":
			return fmt.Errorf("reqlock: %s: a method of Idempotent is empty", a)
		case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "QUERY":
			return fmt.Errorf("reqlock: %s: %s is idempotent by itself, without a key", a, method)
		}
		methods = append(methods, method)
	}
	if len(methods) == 0 {
		return fmt.Errorf("reqlock: %s: Idempotent needs a method", a)
	}
	s.Methods = methods
	return nil
}
