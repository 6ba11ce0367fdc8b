package keytext

import "net/url"

// QueryValues returns the values of a parameter of a query. A malformed query is
// kind.ErrInvalidKey: url.URL.Query would silently drop its malformed parts.
func QueryValues(query, name string) ([]string, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, Invalid("a malformed query")
	}
	return values[name], nil
}
