package campaign

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/traffic/client"
)

// Equal random numbers would make the choices of the fault and the clients dependent.
func TestTheFaultAndTheClientsDrawTheirOwnNumbers(t *testing.T) {
	const seed = 42
	drawn := map[uint64]string{faultRandom(seed).Uint64(): "the fault"}
	for number := range 8 {
		for life := range 4 {
			n := client.RandomOf(seed, number, life).Uint64()
			if who := drawn[n]; who != "" {
				t.Errorf("client %d in life %d draws what %s draws", number, life, who)
			}
			drawn[n] = "another client"
		}
	}
}
