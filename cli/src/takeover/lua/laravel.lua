local function claim(body, score) keep(body, score, '', {'body', body}, {}) end
local function back(place, score, _, fields) put(place, score, fields[2]) end
