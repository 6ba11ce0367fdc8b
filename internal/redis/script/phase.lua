-- phase.lua (after fence.lua, shared.lua): the fencing number of a phase. All shared leases of a phase have the same number, which
-- says that no exclusive lease was granted since. The next exclusive lease and the next phase have higher numbers.

-- reserveForPhase returns the number of the phase and 1, or 0 and 0 if none is wanted. It reserves a number if the phase has none.
local function reserveForPhase(key, last, wanted)
  if wanted == 0 then return 0, 0 end
  if number == '0' then number = string.format('%.0f', (reserve(key, last, 1))) end
  return tonumber(number), 1
end
