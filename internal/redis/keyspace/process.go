package keyspace

import "strings"

// processMark precedes the id in the name of the record of a process.
const processMark = "process:"

// idLen is the length of a process id: hex digits of 16 bytes.
const idLen = 32

// Process returns the name of the record of a process: see package registry. It differs from the
// name of the lock of the key "process:<id>", and from those of its companions.
func (n Names) Process(id string) string { return n.Companion(n.prefix+processMark+id, ProcessSuffix) }

// ProcessPattern returns a pattern of SCAN that matches the records of the processes whose ids begin
// with these digits. It also matches other names: see OfProcess.
func (n Names) ProcessPattern(digits string) string {
	body := Escape(n.prefix) + processMark + digits + "*"
	if HasTag(n.prefix) {
		return body + ProcessSuffix
	}
	return "{" + body + "}" + ProcessSuffix
}

// OfProcess returns the id of the process to which a record with this name belongs. It reports
// false for the name of anything else.
func (n Names) OfProcess(record string) (id string, ok bool) {
	body := strings.TrimSuffix(strings.TrimSuffix(record, ProcessSuffix), "}")
	id = body[max(0, len(body)-idLen):]
	return id, len(id) == idLen && strings.Trim(id, "0123456789abcdef") == "" && n.Process(id) == record
}
