package protomsg

import "github.com/reqlock/reqlock/adapter"

// Declared is a setting of grpclock, for the interceptor of a method whose rules a .proto file
// declares. Such an interceptor ignores core.WithOptionalKey of its Locker, because the rule says
// whether the key is optional. It does not count as an interceptor of a ByMethod in its key either:
// protolock warns of rules that have no effect, and a ByMethod in a source may have more methods.
var Declared = adapter.NewSetting[bool]("grpclock", "a declared rule", adapter.ForAll)
