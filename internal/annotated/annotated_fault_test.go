package annotated_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/reqlock/reqlock/internal/annotated"
)

// Each mistake has a text that names the file, the method, the rule and the field.
func TestEachMistakeOfAMethodIsNamed(t *testing.T) {
	t.Parallel()
	const at = "reqlock: case/v1/case.proto: case.v1.TestService."
	for name, test := range map[string]struct {
		method, rules string
		want          string // after the name of the method; "": no mistake
	}{
		"no such field": {
			"UnaryCall", `lock { key { field: "payload.body" } } lock { key { field: "response_status.massage" } }`,
			"lock 1: key: field \"payload.body\": \"body\" of grpc.testing.Payload is a bytes, which is no key\n" +
				at + `UnaryCall: lock 2: key: field "response_status.massage": grpc.testing.EchoStatus has no field "massage"`,
		},
		"a message":       {"UnaryCall", `lock { key { field: "payload" } }`, `lock 1: key: field "payload": "payload" of grpc.testing.SimpleRequest is a message, which is no key`},
		"a bool":          {"UnaryCall", `lock { key { field: "fill_username" } }`, `lock 1: key: field "fill_username": "fill_username" of grpc.testing.SimpleRequest is a bool, which is no key`},
		"through a text":  {"UnaryCall", `lock { key { field: "response_size.x" } }`, `lock 1: key: field "response_size.x": "response_size" of grpc.testing.SimpleRequest is a int32, which has no fields`},
		"repeated":        {"StreamingOutputCall", `lock { key { field: "response_parameters.size" } }`, `lock 1: key: field "response_parameters.size": "response_parameters" of grpc.testing.StreamingOutputCallRequest is repeated`},
		"no path":         {"UnaryCall", `lock { key { field: "" } }`, `lock 1: key: field "": grpc.testing.SimpleRequest has no field ""`},
		"no key":          {"UnaryCall", `lock { name: "account" }`, `lock 1: it has no key`},
		"an empty part":   {"UnaryCall", `lock { key { literal: "a" } key {} }`, `lock 1: key: part 2 has no field, metadata, source or literal`},
		"metadata, bytes": {"UnaryCall", `lock { key { metadata: "x-Bin" } }`, `lock 1: key: metadata "x-Bin": it holds bytes, which are no key`},
		"metadata, name":  {"UnaryCall", `lock { key { metadata: "x account" } }`, `lock 1: key: metadata "x account": metadata has no such name`},
		"metadata, none":  {"UnaryCall", `lock { key { metadata: "" } }`, `lock 1: key: metadata "": metadata has no such name`},
		"source":          {"UnaryCall", `lock { key { source: "usr" } }`, `lock 1: key: source "usr": there is no such source; given are "user"`},
		"source, none":    {"UnaryCall", `lock { key { source: "" } }`, `lock 1: key: source "": it has no name`},
		"literal":         {"UnaryCall", `lock { key { literal: "" } }`, `lock 1: key: literal "": it is empty`},
		"name":            {"UnaryCall", `lock { name: "4you" key { literal: "a" } }`, "lock 1: name: Named needs a name of letters, digits, '-', '_', '.' and '/' that does not begin with a digit"},
		"name i":          {"UnaryCall", `lock { name: "i" key { literal: "a" } }`, "lock 1: name: Named cannot use the name of idempotent requests"},
		"wait":            {"UnaryCall", `lock { key { literal: "a" } wait { seconds: -1 } }`, "lock 1: wait: -1s is negative"},
		"short wait":      {"UnaryCall", `lock { key { literal: "a" } wait { nanos: 5 } }`, "lock 1: wait: 5ns is below 1ms: a number without a unit counts nanoseconds, so write a unit, as in 5*time.Second"},
		"ttl":             {"UnaryCall", `lock { key { literal: "a" } ttl { nanos: 50000000 } }`, "lock 1: ttl: 50ms is below 100ms"},
		"no duration":     {"UnaryCall", `lock { key { literal: "a" } ttl { seconds: 1 nanos: -1 } }`, "lock 1: ttl: 1 seconds and -1 nanoseconds are no duration"},
		"two waits": {
			"UnaryCall", `lock { key { literal: "a" } wait { seconds: 1 } } lock { key { literal: "b" } } lock { key { literal: "c" } wait { seconds: 2 } }`,
			"lock 3: wait: 2s differs from the 1s of another lock of the method, and a call takes its locks together",
		},
		"two ttls": {
			"UnaryCall", `lock { key { literal: "a" } ttl { seconds: 1 } } lock { key { literal: "b" } ttl { seconds: 2 } }`,
			"lock 2: ttl: 2s differs from the 1s of another lock of the method, and a call takes its locks together",
		},
		"a lock, twice": {
			"UnaryCall", `lock { name: "a" key { source: "user" } key { metadata: "x-A" } } lock { key { literal: "b" } } lock { name: "a" key { source: "user" } key { metadata: "X-a" } }`,
			"lock 3: it has the name and the key of lock 1",
		},
		"a lock, shared and alone": {
			"UnaryCall", `lock { key { field: "response_status.message" } shared: true } lock { key { field: "response_status.message" } }`,
			"lock 2: it has the name and the key of lock 1",
		},
		"no lock, twice": {"UnaryCall", `lock { name: "a" } lock { name: "a" }`, "lock 1: it has no key\n" + at + "UnaryCall: lock 2: it has no key"},
		"other locks": {"UnaryCall", `lock { name: "a" key { literal: "l" } } lock { name: "b" key { literal: "l" } } lock { key { literal: "l" } } lock { key { literal: "L" } }
			lock { key { source: "user" } } lock { key { metadata: "user" } } lock { key { metadata: "x" } } lock { key { literal: "l" } key { literal: "l" } }`, ""},
		"idempotent, optional, no key": {"UnaryCall", `idempotent { optional: true }`, "idempotent: it has no key"},
		"permits":                      {"UnaryCall", `lock { key { literal: "a" } permits: 4000000000 }`, "lock 1: permits: 4000000000 is not from 1 to 999999999"},
		"shared and permits":           {"UnaryCall", `lock { key { literal: "a" } shared: true permits: 5 }`, "lock 1: shared: permits is set, too: keep one of them"},
		"idempotent, no key":           {"UnaryCall", `idempotent {}`, "idempotent: it has no key"},
		"idempotent, field":            {"UnaryCall", `idempotent { key { field: "id" } }`, `idempotent: key: field "id": grpc.testing.SimpleRequest has no field "id"`},
		"idempotent, stream":           {"HalfDuplexCall", `idempotent { key { source: "user" } }`, "idempotent: the method is a stream, and streams are not idempotent"},
		"idempotent, client stream":    {"StreamingInputCall", `idempotent { key { source: "user" } }`, "idempotent: the method is a stream, and streams are not idempotent"},
		"idempotent, no effects":       {"EmptyCall", `idempotent { key { source: "user" } }`, "idempotent: idempotency_level says that the method has no side effects, so its calls may run twice"},
		"optional, of the server":      {"UnaryCall", `idempotent { key { source: "user" } key { literal: "a" } optional: true }`, "idempotent: optional: the key has no field and no metadata, so no call can lack it"},
		"idempotent, name":             {"UnaryCall", `idempotent { name: "POST /x" key { source: "user" } }`, "idempotent: name: \"POST /x\" is no name: use letters, digits, '-', '_', '.' and '/', and do not begin with a digit"},
		"retention":                    {"UnaryCall", `idempotent { key { source: "user" } retention { nanos: 500000000 } }`, "idempotent: retention: 500ms is below 1s"},
		"idempotent, wait":             {"UnaryCall", `idempotent { key { source: "user" } wait { seconds: -2 } }`, "idempotent: wait: -2s is negative"},
		"unlocked and a lock":          {"UnaryCall", `unlocked: true lock { key { literal: "a" } }`, "unlocked: the method has another rule: keep one of them"},
		"unlocked and idempotent":      {"UnaryCall", `unlocked: true idempotent { key { source: "user" } }`, "unlocked: the method has another rule: keep one of them"},
		"empty":                        {"UnaryCall", ``, "its option is empty: write lock, idempotent or unlocked"},
		"in code, too":                 {"CacheableUnaryCall", `lock { key { literal: "a" } }`, "a ByMethod of the program locks it, too: keep one of them"},
		"in code, and unlocked":        {"CacheableUnaryCall", `unlocked: true`, "a ByMethod of the program locks it, too: keep one of them"},
		"in code, and idempotent":      {"CacheableUnaryCall", `idempotent { key { source: "user" } key { metadata: "x-id" } optional: true }`, ""},
		"no mistake":                   {"UnaryCall", `lock { name: "a" key { field: "response_status.code" } key { metadata: "x" } wait {} ttl { seconds: 1 } }`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := service(map[string]string{test.method: test.rules})
			s.NoSideEffects = []string{"EmptyCall"}
			_, err := read(t, s)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v", err)
			case test.want != "" && (err == nil || err.Error() != at+test.method+": "+test.want):
				t.Errorf("got  %v\nwant %s%s: %s", err, at, test.method, test.want)
			}
		})
	}
}

func TestEachMistakeOfAServiceIsNamed(t *testing.T) {
	t.Parallel()
	const at = "reqlock: case/v1/case.proto: case.v1.TestService"
	for rules, want := range map[string]string{
		`ttl { nanos: 1000000 }`: at + ": ttl: 1ms is below 100ms",
		`wait { seconds: -1 }`:   at + ": wait: -1s is negative",
	} {
		s := service(nil)
		s.Rules = rules
		if _, err := read(t, s); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", rules, err, want)
		}
	}
}

// must_declare names each method that declares nothing. A method that the code locks, or that is
// unlocked on purpose, is declared.
func TestMustDeclareRefusesUndeclaredMethods(t *testing.T) {
	t.Parallel()
	s := service(map[string]string{
		"UnaryCall": `lock { key { literal: "a" } }`, "EmptyCall": `unlocked: true`, "UnimplementedCall": `idempotent { key { source: "user" } }`,
	})
	s.Rules = `must_declare: true`
	_, err := read(t, s)
	var want []string
	for _, method := range []string{"StreamingOutputCall", "StreamingInputCall", "FullDuplexCall", "HalfDuplexCall"} {
		want = append(want, "reqlock: case/v1/case.proto: case.v1.TestService."+method+
			": it declares nothing, and must_declare of the service demands a rule: write lock, idempotent or unlocked")
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("got %v", err)
	}
}

// A rule with a field that this version does not know would not do what it demands.
func TestNewFieldsAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		nested []protowire.Number // the numbers of the messages around the field 77
		want   string
	}{
		"in the option":   {nil, "the field 77 of MethodRules"},
		"in a lock":       {[]protowire.Number{1}, "the field 77 of Lock"},
		"in a part":       {[]protowire.Number{1, 1}, "the field 77 of Part"},
		"behind the lock": {[]protowire.Number{2}, "the field 77 of Idempotent"},
	} {
		rules := protowire.AppendVarint(protowire.AppendTag(nil, 77, protowire.VarintType), 1)
		for _, number := range test.nested {
			rules = protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), rules)
		}
		rules = append(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), nil), rules...) // a lock
		if err := readRaw(t, rules); err == nil || !strings.Contains(err.Error(),
			"case.v1.TestService.UnaryCall: this version of reqlock does not know "+test.want+": update reqlock") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := readRaw(t, []byte{0xff}); err == nil || !strings.Contains(err.Error(), "the option reqlock.v1.method cannot be read") {
		t.Errorf("bytes that are no message: got %v", err)
	}
}

// readRaw reads a service whose method UnaryCall has these bytes as its option.
func readRaw(t *testing.T, rules []byte) error {
	t.Helper()
	file := service(map[string]string{"UnaryCall": `unlocked: true`}).Proto(t)
	setRaw(t, file, protowire.AppendBytes(protowire.AppendTag(nil, 50917, protowire.BytesType), rules))
	_, err := readFile(t, file, protoregistry.GlobalFiles)
	return err
}

// All mistakes of all services are in one error.
func TestMistakesOfTwoFilesAreJoined(t *testing.T) {
	t.Parallel()
	one := service(map[string]string{"UnaryCall": `lock {}`})
	two := service(map[string]string{"EmptyCall": `lock { key { source: "who" } }`})
	two.File, two.Package = "other/v1/other.proto", "other.v1"
	services := []protoreflect.ServiceDescriptor{one.Descriptor(t), two.Descriptor(t)}
	_, err := annotated.Read(services, annotated.Program{})
	want := "reqlock: case/v1/case.proto: case.v1.TestService.UnaryCall: lock 1: it has no key\n" +
		`reqlock: other/v1/other.proto: other.v1.TestService.EmptyCall: lock 1: key: source "who": there is no such source; none is given`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := annotated.Read(services[1:], annotated.Program{AnySource: true}); err != nil {
		t.Errorf("with any source: %v", err)
	}
}
