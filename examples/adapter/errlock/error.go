package errlock

import (
	"net/http"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/examples/adapter/errmux"
)

// self is the name of this package in errors.
const self = adapter.Name("errlock")

// errorHandler is the setting of WithErrorHandler.
var errorHandler = adapter.NewSetting[errmux.ErrorHandler](self, "WithErrorHandler", adapter.ForAll)

// WithErrorHandler sets the function that answers requests that do not run: WriteError if not set.
func WithErrorHandler(handle errmux.ErrorHandler) core.Option { return errorHandler.Option(handle) }

// refuse answers a request that does not run.
func refuse(w http.ResponseWriter, r *http.Request, err error, handle errmux.ErrorHandler, entry adapter.Entry) {
	if handle == nil {
		entry.Refuse(w, err)
		return
	}
	guard := entry.Guard(w, err)
	defer guard.Finish() // answers if handle has not, also when it panics
	handle(guard, r, err)
}

// WriteError answers a request that did not run. An error handler can call it.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	adapter.WriteRefusal(w, adapter.InContext(r.Context(), err))
}
