package httpkey

import "net/http"

// HandUp gives the request of those outside the forms that were parsed inside,
// in a request of its own. They cannot parse them any more, since the body is
// read; and the server removes the temporary files of its own request only. A
// form that is there outside stays, and nothing is written where nothing changes.
func HandUp(inner, outer *http.Request) {
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
