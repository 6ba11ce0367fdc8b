package main

// runtime is the file that is added to the package under test. An environment variable
// says which mutant is on; another one names a file that gets the number of each mutant
// that is reached.
const runtime = `package %s

import (
	mutcmp "cmp"
	mutos "os"
	mutstrconv "strconv"
	mutsync "sync"
)

var (
	mutant, _  = mutstrconv.Atoi(mutos.Getenv("MUTANT"))
	mutTrace   = mutos.Getenv("MUTANT_TRACE")
	mutReached mutsync.Map
)

// mutOn reports whether the mutant is on.
func mutOn(id int) bool {
	if mutTrace != "" {
		if _, known := mutReached.LoadOrStore(id, true); !known {
			file, err := mutos.OpenFile(mutTrace, mutos.O_APPEND|mutos.O_CREATE|mutos.O_WRONLY, 0o600)
			if err == nil {
				_, _ = file.WriteString(mutstrconv.Itoa(id) + "\n")
				_ = file.Close()
			}
		}
	}
	return mutant == id
}

func mutNot(id int, v bool) bool { return v != mutOn(id) }

func mutAnd(id int, a bool, b func() bool) bool {
	if mutOn(id) {
		return a || b()
	}
	return a && b()
}

func mutOr(id int, a bool, b func() bool) bool {
	if mutOn(id) {
		return a && b()
	}
	return a || b()
}

func mutLess[T mutcmp.Ordered](id int, a, b T) bool {
	if mutOn(id) {
		return a <= b
	}
	return a < b
}

func mutLessEqual[T mutcmp.Ordered](id int, a, b T) bool {
	if mutOn(id) {
		return a < b
	}
	return a <= b
}

func mutGreater[T mutcmp.Ordered](id int, a, b T) bool {
	if mutOn(id) {
		return a >= b
	}
	return a > b
}

func mutGreaterEqual[T mutcmp.Ordered](id int, a, b T) bool {
	if mutOn(id) {
		return a > b
	}
	return a >= b
}

type mutNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func mutAdd[T mutNumber](id int, a, b T) T {
	if mutOn(id) {
		return a - b
	}
	return a + b
}

func mutSub[T mutNumber](id int, a, b T) T {
	if mutOn(id) {
		return a + b
	}
	return a - b
}
`
