package report

import "github.com/reqlock/reqlock/tests/bench/internal/compare"

// A figure is one number of a comparison.
type figure func(compare.Run) float64

func locksPerSecond(r compare.Run) float64    { return r.LocksPerSecond }
func handoffsPerSecond(r compare.Run) float64 { return r.HandoffsPerSecond }
func commandsEach(r compare.Run) float64      { return r.CommandsEach }
func clientCPU(r compare.Run) float64         { return r.ClientCPU }
func serverCPU(r compare.Run) float64         { return r.ServerCPU }
func waitP50(r compare.Run) float64           { return r.WaitP50 }
func waitP99(r compare.Run) float64           { return r.WaitP99 }
func waitMax(r compare.Run) float64           { return r.WaitMax }
func maxOverMean(r compare.Run) float64       { return r.MaxOverMean }
func jain(r compare.Run) float64              { return float64(r.Jain) }
func allocations(r compare.Run) float64       { return r.Allocations }
