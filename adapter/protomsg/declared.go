package protomsg

import "github.com/reqlock/reqlock/adapter"

// Declared is a setting of an adapter, for the middleware of a method whose rules a .proto file
// declares. Such a middleware ignores core.WithOptionalKey of its Locker, because the rule says
// whether the key is optional. It does not count as a middleware of a ByMethod in its key either:
// the rules have warnings of their own, and a ByMethod in a source may have more methods.
func Declared(n adapter.Name) adapter.Setting[bool] {
	return adapter.NewSetting[bool](n, "a declared rule", adapter.ForAll)
}
