package annotated

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// optionFile is the path of the file that declares the options, or the end of this path: a copy
// may be in a folder of its own.
const optionFile = "reqlock/v1/annotations.proto"

// importsOption reports whether a file can set the options: it imports the file that declares
// them, itself or by a public import.
func importsOption(file protoreflect.FileDescriptor) bool {
	return declareOption(file.Imports()) || declareOption(optionImports(file))
}

// optionImports returns the files of "import option", which edition 2024 has. protoreflect has no
// method for them yet.
func optionImports(file protoreflect.FileDescriptor) protoreflect.FileImports {
	if file, ok := file.(interface {
		OptionImports() protoreflect.FileImports
	}); ok {
		return file.OptionImports()
	}
	return nil
}

// declareOption reports whether one of the imported files declares the options, or imports them
// publicly.
func declareOption(imports protoreflect.FileImports) bool {
	for i := 0; imports != nil && i < imports.Len(); i++ {
		if file := imports.Get(i); isOptionFile(file.Path()) || importsPublicly(file) {
			return true
		}
	}
	return false
}

// importsPublicly reports whether files that import a file can set the options, too.
func importsPublicly(file protoreflect.FileDescriptor) bool {
	for i := range file.Imports().Len() {
		imported := file.Imports().Get(i)
		if imported.IsPublic && (isOptionFile(imported.Path()) || importsPublicly(imported)) {
			return true
		}
	}
	return false
}

// isOptionFile reports whether a path is that of the file which declares the options.
func isOptionFile(path string) bool {
	return path == optionFile || strings.HasSuffix(path, "/"+optionFile)
}
