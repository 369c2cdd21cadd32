-- Begins each script that claims jobs. Keys: the claim list, the state of the import, its lease, then those of the peer.
-- Words: the token of the lease, take or peek, how many to pass over, how many at most, the name of the place, the time
-- of the source in ms, then those of the peer.
local taking, place, now = ARGV[2] == 'take', ARGV[5], tonumber(ARGV[6])
local offset, count = tonumber(ARGV[3]), tonumber(ARGV[4])
if taking and redis.call('GET', KEYS[3]) ~= ARGV[1] then return redis.error_reply('BUSY the lease of the import has another holder') end
local records, stays = {}, {}
local function stay(id, why)
  stays[#stays + 1] = id
  stays[#stays + 1] = why
end
local function keep(score, id, fields, extra)
  records[#records + 1] = {0, place, score, id, fields, extra}
end
