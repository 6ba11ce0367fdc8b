package grpclock_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/typepb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

func TestField(t *testing.T) {
	t.Parallel()
	account := grpclock.Field[*pb.TransferRequest]("account.id")
	seconds := grpclock.Field[*durationpb.Duration]("seconds")
	unsigned := grpclock.Field[*wrapperspb.UInt64Value]("value")
	// A field that is "optional" (proto2), an enum with and without presence,
	// a field in a oneof, and one below a message that may be missing.
	number := grpclock.Field[*descriptorpb.FieldDescriptorProto]("number")
	name := grpclock.Field[*descriptorpb.FieldDescriptorProto]("name")
	label := grpclock.Field[*descriptorpb.FieldDescriptorProto]("label")
	syntax := grpclock.Field[*typepb.Type]("syntax")
	text := grpclock.Field[*structpb.Value]("string_value")
	null := grpclock.Field[*structpb.Value]("null_value")
	path := grpclock.Field[*descriptorpb.FileDescriptorProto]("options.optimize_for")
	for title, test := range map[string]struct {
		key     grpclock.Key
		message any
		want    string
		wantErr error
	}{
		"string in a message":           {account, transferOf("42"), "42", nil},
		"empty string":                  {account, transferOf(""), "", core.ErrNoKey},
		"message not set":               {account, &pb.TransferRequest{}, "", core.ErrNoKey},
		"nil pointer":                   {account, (*pb.TransferRequest)(nil), "", core.ErrNoKey},
		"no message":                    {account, nil, "", core.ErrNoKey},
		"control character":             {account, transferOf("4\n2"), "", core.ErrInvalidKey},
		"too long":                      {account, transferOf(strings.Repeat("x", 513)), "", core.ErrInvalidKey},
		"integer":                       {seconds, &durationpb.Duration{Seconds: 42}, "42", nil},
		"least integer":                 {seconds, &durationpb.Duration{Seconds: math.MinInt64}, "-9223372036854775808", nil},
		"greatest integer":              {unsigned, wrapperspb.UInt64(math.MaxUint64), "18446744073709551615", nil},
		"zero without presence":         {seconds, &durationpb.Duration{Nanos: 1}, "", core.ErrNoKey},
		"zero with presence":            {number, &descriptorpb.FieldDescriptorProto{Number: proto.Int32(0)}, "0", nil},
		"not set, with presence":        {number, &descriptorpb.FieldDescriptorProto{}, "", core.ErrNoKey},
		"empty string with presence":    {name, &descriptorpb.FieldDescriptorProto{Name: proto.String("")}, "", core.ErrNoKey},
		"enum":                          {label, &descriptorpb.FieldDescriptorProto{Label: descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()}, "3", nil},
		"enum, zero without presence":   {syntax, &typepb.Type{}, "", core.ErrNoKey},
		"enum, without presence":        {syntax, &typepb.Type{Syntax: typepb.Syntax_SYNTAX_PROTO3}, "1", nil},
		"enum, unknown":                 {syntax, &typepb.Type{Syntax: 77}, "77", nil},
		"not set, with a default value": {path, &descriptorpb.FileDescriptorProto{Options: &descriptorpb.FileOptions{}}, "", core.ErrNoKey},
		"in a oneof":                    {text, structpb.NewStringValue("42"), "42", nil},
		"in a oneof, another is set":    {text, structpb.NewNumberValue(42), "", core.ErrNoKey},
		"in a oneof, zero":              {null, structpb.NewNullValue(), "0", nil},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			checkKey(t, test.key, grpclock.NewCall(t.Context(), "", test.message), test.want, test.wantErr)
		})
	}
}

// A path that leads to no key panics where it is written, and says which path
// it is and what is wrong with it.
func TestFieldPanics(t *testing.T) {
	t.Parallel()
	type file = *descriptorpb.FileDescriptorProto
	for name, test := range map[string]struct {
		field func(path string) grpclock.Key
		path  string
		want  string
	}{
		"typo":                   {grpclock.Field[*pb.TransferRequest], "acount.id", `no field "acount"`},
		"typo below":             {grpclock.Field[*pb.TransferRequest], "account.ids", `reqlock.bank.v1.Account has no field "ids"`},
		"JSON name":              {grpclock.Field[file], "options.javaPackage", `no field "javaPackage"`},
		"Go name":                {grpclock.Field[*pb.TransferRequest], "Account.Id", `no field "Account"`},
		"empty":                  {grpclock.Field[*pb.TransferRequest], "", `no field ""`},
		"empty part":             {grpclock.Field[*pb.TransferRequest], "account..id", `no field ""`},
		"dot at the end":         {grpclock.Field[*pb.TransferRequest], "account.", `no field ""`},
		"a message":              {grpclock.Field[*pb.TransferRequest], "account", "message, which is no key"},
		"below a string":         {grpclock.Field[*pb.TransferRequest], "account.id.x", "string, which has no fields"},
		"bytes":                  {grpclock.Field[*wrapperspb.BytesValue], "value", "bytes, which is no key"},
		"float":                  {grpclock.Field[*wrapperspb.FloatValue], "value", "float, which is no key"},
		"double":                 {grpclock.Field[*wrapperspb.DoubleValue], "value", "double, which is no key"},
		"bool":                   {grpclock.Field[*wrapperspb.BoolValue], "value", "bool, which is no key"},
		"repeated":               {grpclock.Field[file], "dependency", "repeated"},
		"below a repeated field": {grpclock.Field[file], "message_type.name", `"message_type" of google.protobuf.FileDescriptorProto is repeated`},
		"map":                    {grpclock.Field[*structpb.Struct], "fields", "map"},
		"below a map":            {grpclock.Field[*structpb.Struct], "fields.key", "map"},
		"a oneof":                {grpclock.Field[*structpb.Value], "kind", "oneof"},
		"below a oneof":          {grpclock.Field[*structpb.Value], "kind.string_value", "oneof"},
		"any message":            {grpclock.Field[proto.Message], "account.id", "not a generated message type"},
		"a dynamic message":      {grpclock.Field[*dynamicpb.Message], "account.id", "not a generated message type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message := adaptertest.PanicText(func() { test.field(test.path) })
			if !strings.HasPrefix(message, fmt.Sprintf("reqlock: grpclock: Field(%q): ", test.path)) || !strings.Contains(message, test.want) {
				t.Errorf("panic %q", message)
			}
		})
	}
}

// Whatever the path is, Field panics with a message that names it, or returns a
// key that is found in a message, or says why there is none.
func FuzzFieldPath(f *testing.F) {
	for _, seed := range []string{
		"name", "options.java_package", "options.optimize_for", "options.features.enum_type", "options.deprecated",
		"message_type.name", "", ".", "options.", "a\x00", "options\xff", "package", "edition", "syntax",
	} {
		f.Add(seed, "a")
	}
	f.Fuzz(func(t *testing.T, path, value string) {
		var key grpclock.Key
		message := adaptertest.PanicText(func() { key = grpclock.Field[*descriptorpb.FileDescriptorProto](path) })
		if message != "" {
			if !strings.HasPrefix(message, fmt.Sprintf("reqlock: grpclock: Field(%q): ", path)) {
				t.Fatalf("%q: panic %q", path, message)
			}
			return
		}
		for _, m := range []*descriptorpb.FileDescriptorProto{
			nil,
			{},
			{
				Name: &value, Package: &value, Syntax: &value, Edition: descriptorpb.Edition(len(value)).Enum(),
				Options: &descriptorpb.FileOptions{JavaPackage: &value, Features: &descriptorpb.FeatureSet{}},
			},
		} {
			k, err := key.Read(grpclock.NewCall(t.Context(), "", m))
			if (k.Raw() == "") == (err == nil) || err != nil && !errors.Is(err, core.ErrNoKey) && !errors.Is(err, core.ErrInvalidKey) {
				t.Errorf("%q of %v: %q, %v", path, m, k.Raw(), err)
			}
		}
	})
}
