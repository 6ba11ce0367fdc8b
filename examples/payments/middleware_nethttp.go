package main

import (
	"context"
	"log/slog"
	"net/http"
)

// chain puts middlewares before a handler, the outermost first.
func chain(handler http.HandlerFunc, outermost ...func(http.Handler) http.Handler) http.Handler {
	var h http.Handler = handler
	for i := len(outermost) - 1; i >= 0; i-- {
		h = outermost[i](h)
	}
	return h
}

// recovered answers 500 if a handler panics. The lock was freed before the panic
// arrives here. The outcome of a payment is unknown then, and its copies are refused.
func recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { answerPanic(w, r, recover()) }()
		next.ServeHTTP(w, r)
	})
}

func answerPanic(w http.ResponseWriter, r *http.Request, panicked any) {
	switch panicked {
	case nil:
	case http.ErrAbortHandler: // for the server
		panic(panicked)
	default:
		slog.ErrorContext(r.Context(), "handler panicked", "panic", panicked)
		reply(w, http.StatusInternalServerError, map[string]any{"error": "internal error"})
	}
}

// userOf returns the user that authenticated has stored.
func userOf(r *http.Request) user {
	u, _ := r.Context().Value(userKey{}).(user)
	return u
}

// authenticated stores the user of the request in its context.
func authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, ok := bearer(r.Header.Get("Authorization"))
		if !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			reply(w, http.StatusUnauthorized, map[string]any{"error": "the user is unknown"})
			return
		}
		ctx := context.WithValue(r.Context(), userKey{}, u)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// owner refuses requests for the account of another user. An account has the name of
// its owner.
func owner(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if userOf(r).ID != r.PathValue("id") {
			reply(w, http.StatusForbidden, map[string]any{"error": "the account is not yours"})
			return
		}
		next.ServeHTTP(w, r)
	})
}
