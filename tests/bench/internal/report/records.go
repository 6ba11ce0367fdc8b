package report

import (
	"fmt"
	"io"

	"github.com/reqlock/reqlock/tests/bench/internal/idempotent"
)

// records returns the runs of a framework's middleware with answers of one size.
func (r *Results) records(framework string, answer int) (runs []idempotent.RecordsRun) {
	for _, run := range r.Records {
		if run.Framework == framework && run.Answer == answer {
			runs = append(runs, run)
		}
	}
	return runs
}

// PrintRecords prints what a record takes in Redis.
func (r *Results) PrintRecords(w io.Writer) {
	fmt.Fprintf(w, "%s: memory of Redis for each kept answer, with its key and all that belongs to it\n", idempotent.RecordsSuite)
	t := newTable("middleware on", "answer", "memory/record", "over the answer", "keys/record")
	for _, answer := range idempotent.Answers() {
		for _, framework := range idempotent.RecordFrameworks() {
			runs := r.records(framework, answer)
			bytes := medianOf(runs, func(run idempotent.RecordsRun) float64 { return run.Bytes })
			t.row(framework, size(float64(answer)), size(bytes), size(bytes-float64(answer)),
				number(medianOf(runs, func(run idempotent.RecordsRun) float64 { return run.Keys })))
		}
	}
	t.print(w)
}
