// Command faults is the fault campaign of reqlock.
package main

import (
	"os"

	"github.com/reqlock/reqlock/faults/internal/crew"
)

func main() {
	if code, client := crew.Main(); client {
		os.Exit(code)
	}
}
