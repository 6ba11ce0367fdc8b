package core

import "strings"

// join is errors.Join with a text of one line, because a log has one line for each event. A
// single error is returned as it is.
func join(errs ...error) error {
	all := &joined{}
	for _, err := range errs {
		if err != nil {
			all.errs = append(all.errs, err)
		}
	}
	switch len(all.errs) {
	case 0:
		return nil
	case 1:
		return all.errs[0]
	}
	return all
}

// A joined error is two or more errors. It is a pointer, so that it can be compared.
type joined struct{ errs []error }

// Error returns the texts of all errors.
func (j *joined) Error() string {
	texts := make([]string, len(j.errs))
	for i, err := range j.errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors, for errors.Is and errors.As.
func (j *joined) Unwrap() []error { return j.errs }
