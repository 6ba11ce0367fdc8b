-- holds.lua begins each script that compares the value of K with a token. Only these functions compare them, so that one place
-- says which part of a value is the token.

-- tokenIn returns the token in a value of K, and holds reports whether it is this one.
local function tokenIn(value) return value end
local function holds(value, token) return tokenIn(value) == token end
