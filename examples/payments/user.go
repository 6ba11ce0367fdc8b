package main

import "strings"

// A user is the sender of a request.
type user struct{ ID string }

// Subject returns the user's name.
func (u user) Subject() string { return u.ID }

// userKey is the context key of the user of a request.
type userKey struct{}

// bearer returns the user of an Authorization header. In this example the
// bearer token is the user's name itself; yours verifies it.
func bearer(authorization string) (u user, ok bool) {
	name, ok := strings.CutPrefix(authorization, "Bearer ")
	return user{ID: name}, ok && name != ""
}
