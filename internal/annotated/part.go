package annotated

import (
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/annotatedpb"
	"github.com/reqlock/reqlock/internal/fieldpath"
)

// A Part is one part of a key.
type Part struct {
	Kind Kind
	Text string         // the path of the field, or the name, or the literal
	Path fieldpath.Path // of a Field
}

// A Kind says where a part of a key comes from.
type Kind string

// The kinds, by their names in the annotations.
const (
	Field    Kind = "field"
	Metadata Kind = "metadata"
	Source   Kind = "source"
	Literal  Kind = "literal"
)

// String returns the part as the annotation writes it: field "from.id".
func (p Part) String() string { return string(p.Kind) + " " + strconv.Quote(p.Text) }

// ofClient reports whether the client chooses the part.
func (p Part) ofClient() bool { return p.Kind == Field || p.Kind == Metadata }

// equals reports whether two parts of one method come from the same place.
func (p Part) equals(other Part) bool {
	return p.Kind == other.Kind && (p.Text == other.Text || p.Kind == Metadata && strings.EqualFold(p.Text, other.Text))
}

// metadataName matches the names that gRPC accepts.
var metadataName = regexp.MustCompile(`^[0-9A-Za-z_.-]+$`)

// parts reads the parts of a key of a method.
func (r *reader) parts(at place, method protoreflect.MethodDescriptor, declared []*annotatedpb.Part) []Part {
	if len(declared) == 0 {
		at.faultf("it has no key")
	}
	at = at.in("key")
	parts := make([]Part, len(declared))
	for i, d := range declared {
		part := &parts[i]
		switch from := d.GetFrom().(type) {
		case *annotatedpb.Part_Field:
			part.Kind, part.Text = Field, from.Field
			path, err := fieldpath.Parse(method.Input(), part.Text)
			if err != nil {
				at.in("%v", part).fault(err)
			}
			part.Path = path
		case *annotatedpb.Part_Metadata:
			part.Kind, part.Text = Metadata, from.Metadata
			switch {
			case !metadataName.MatchString(part.Text):
				at.in("%v", part).faultf("metadata has no such name")
			case strings.HasSuffix(strings.ToLower(part.Text), "-bin"):
				at.in("%v", part).faultf("it holds bytes, which are no key")
			}
		case *annotatedpb.Part_Source:
			part.Kind, part.Text = Source, from.Source
			if err := r.program.checkSource(part.Text); err != nil {
				at.in("%v", part).fault(err)
			}
		case *annotatedpb.Part_Literal:
			part.Kind, part.Text = Literal, from.Literal
			if part.Text == "" {
				at.in("%v", part).faultf("it is empty")
			}
		default:
			at.faultf("part %d has no field, metadata, source or literal", i+1)
		}
	}
	return parts
}

// keyOf returns the key of parts; read returns that of one part.
func keyOf[R any](parts []Part, read func(Part) core.Key[R]) core.Key[R] {
	if len(parts) == 1 {
		return read(parts[0])
	}
	keys := make([]core.Key[R], len(parts))
	for i, part := range parts {
		keys[i] = read(part)
	}
	return core.Join(keys...)
}

// textOf returns the parts of a key as one text.
func textOf(parts []Part) string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part.String()
	}
	return strings.Join(texts, " + ")
}
