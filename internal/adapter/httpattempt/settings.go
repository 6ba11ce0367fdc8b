package httpattempt

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/adapter/record"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// KeyHeader is the header that a request lacks which has no idempotency key.
const KeyHeader = "Idempotency-Key"

// Settings are what the options of Idempotent set, for an adapter whose requests
// are of type R. The zero Settings are the defaults.
type Settings[R any] struct {
	// Methods are those that are idempotent by key: POST and PATCH if none.
	Methods []string
	// OptionalKey are headers; requests that lack all of them run without key.
	OptionalKey []string
	// Fingerprint is the application's own; nil is that of path, query, media type and body.
	Fingerprint func(R) ([]byte, error)
	// MaxBody is up to how many bytes that reads a body: 1 MiB if 0.
	MaxBody int64
	// Stored says which statuses are kept: record.Storable if nil.
	Stored func(status int) bool
	// ReplayedHeaders are replayed beside those of record.Filter.
	ReplayedHeaders []string
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
		if record.NeverReplayed(name) {
			return fmt.Errorf("reqlock: %s: the header %q is never replayed", a, name)
		}
	}
	if s.MaxBody == 0 {
		s.MaxBody = httpkey.DefaultMaxBody
	}
	if s.Stored == nil {
		s.Stored = record.Storable
	}
	return nil
}

// completeMethods checks the methods, and folds their case.
func (s *Settings[R]) completeMethods(a registration.Adapter) error {
	if s.Methods == nil {
		s.Methods = []string{http.MethodPost, http.MethodPatch}
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
