package keytext

import (
	"fmt"
	"strconv"
)

// Call returns how a program writes a key, for its errors: PathValue("id"). Of an argument that is
// not a text it shows the type.
func Call(function string, argument any) string {
	if name, ok := argument.(string); ok {
		return function + "(" + strconv.Quote(name) + ")"
	}
	return fmt.Sprintf("%s(%T)", function, argument)
}
