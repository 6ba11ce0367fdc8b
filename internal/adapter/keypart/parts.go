package keypart

import (
	"errors"
	"fmt"
	"strings"

	"github.com/reqlock/reqlock/core"
)

// OfParts returns the key that a middleware's key function returns for these values of a
// request: the value itself, or the key of core.Join if there are several. A value in double
// quotes is an Idempotency-Key in the quoted form, and counts without its quotes.
func OfParts(parts []string) (string, error) {
	if len(parts) == 0 {
		return "", errors.New("no part of the key is given")
	}
	keys := make([]core.KeyFunc[struct{}], len(parts))
	for i, part := range parts {
		keys[i] = partKey(part)
		if _, err := keys[i].Read(struct{}{}); err != nil {
			return "", fmt.Errorf("part %d of the key: %w", i+1, err)
		}
	}
	if len(keys) == 1 {
		return keys[0].Read(struct{}{})
	}
	return core.Join(keys...).Read(struct{}{})
}

// partKey returns a key function that returns the value.
func partKey(value string) core.KeyFunc[struct{}] {
	return func(struct{}) (string, error) {
		if strings.HasPrefix(value, `"`) {
			return IdempotencyKey([]string{value})
		}
		return value, nil
	}
}
