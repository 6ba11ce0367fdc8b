// Package http declares the free names of snippets for net/http.
package http

import "net/http"

//nolint:unused // snippets use them
var (
	mux                    *http.ServeMux
	srv                    *http.Server
	w                      http.ResponseWriter
	r                      *http.Request
	pay, transfer, handler http.Handler
	auth                   func(http.Handler) http.Handler
)
