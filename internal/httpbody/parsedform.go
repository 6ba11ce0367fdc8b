package httpbody

import "net/http"

// CopyForms copies the forms that were parsed in the inner request to the outer
// request. Outer middlewares cannot parse them any more, because the body has been read.
// The server removes the temporary files of its own request only. Existing forms of the
// outer request stay, and nothing is written if nothing changes.
func CopyForms(inner, outer *http.Request) {
	if outer.Form == nil && inner.Form != nil {
		outer.Form = inner.Form
	}
	if outer.PostForm == nil && inner.PostForm != nil {
		outer.PostForm = inner.PostForm
	}
	if outer.MultipartForm == nil && inner.MultipartForm != nil {
		outer.MultipartForm = inner.MultipartForm
	}
}
