-- token.lua begins each script that compares the value of K with a token. Only this function says which part of a value is the token.
local function tokenIn(value) return value end
