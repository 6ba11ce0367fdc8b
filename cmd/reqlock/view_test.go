package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// namesOf returns the names of a JSON object and of those in it.
func namesOf(kind reflect.Type) (names []string) {
	for n := range kind.NumField() {
		f := kind.Field(n)
		inner := f.Type
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		isObject := inner.Kind() == reflect.Struct && !inner.Implements(reflect.TypeFor[json.Marshaler]())
		switch {
		case f.Anonymous:
			names = append(names, namesOf(inner)...)
		case !f.IsExported(): // it is not in the JSON
		case isObject:
			for _, part := range namesOf(inner) {
				names = append(names, name+"."+part)
			}
		default:
			names = append(names, name)
		}
	}
	return names
}

// Programs read these names. Add some, and keep those that are here.
func TestTheNamesOfJSONAreStable(t *testing.T) {
	t.Parallel()
	for of, want := range map[reflect.Type]string{
		reflect.TypeFor[lockView](): `key digest name idempotent shared
			holders.process holders.service holders.version holders.host holders.pid holders.silent holders.kind holders.lease holders.permits holders.left_ms holders.held_ms holders.caller
			waiting waiters.process waiters.service waiters.version waiters.host waiters.pid waiters.silent waiters.shared waiters.permits waiters.requests waiters.waiting_ms waiters.caller
			fence_max record.endpoint_key record.digest record.state record.seen record.attempts record.process record.age_ms record.retention_ms record.answer_bytes record.first`,
		reflect.TypeFor[recordView](): `endpoint_key digest state seen attempts process age_ms retention_ms answer_bytes first`,
		reflect.TypeFor[processView](): `process service version host pid silent started age_ms held waiting
			holds.digest holds.name holds.caller holds.for_ms holds.idempotent holds.shared holds.requests
			waits.digest waits.name waits.caller waits.for_ms waits.idempotent waits.shared waits.requests`,
		reflect.TypeFor[doneView](): `action digest leases status bytes by why before after error`,
		reflect.TypeFor[keyView]():  `endpoint_key digest name`,
		reflect.TypeFor[finding]():  `check result detail`,
	} {
		if got := namesOf(of); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%v has %q", of, got)
		}
	}
}
