// Package api keeps the exported API of the packages that users import as text, in the
// folder api of the repository: one line for each function, type, field, method, constant
// and variable. Its test fails if the text and the code differ, so that a review sees each
// change of the API.
//
// After a change of the API, write the text again with go generate ./tests/api, and name
// the change in CHANGELOG.md.
package api

//go:generate go test -count=1 -run ^TestTheTextOfTheAPIIsThatOfTheCode$ . -write
