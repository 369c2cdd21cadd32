-- Begins the script of each peer, which claims jobs and puts them back. SEP is between the name of a queue and that of a place;
-- at the NEXT end of a list is its next job. Of a claim:
-- Keys: the claim list, the state of the import, its lease, the place, what the keys of the queue begin with.
-- Words: the token of the lease, take or peek, how many to pass over, how many at most, the name of the place, the time of the
-- source in ms, list, zset, late or lost, then those of the peer. Late are those of a sorted set whose second is over. Lost ones
-- are named: the last words are the time since when they are, and their ids.
-- Of a return: keys: the list whose end the records are, or the key that says what an undo has put back; what the keys of
-- the queue begin with; the list of those whose id is in use again. Words: how many of the list go, or the place of the
-- last one in the undo; trim or mark; then the records, the last claimed first.
local mode, place, now = ARGV[2], ARGV[5], tonumber(ARGV[6])
local returns = mode == 'trim' or mode == 'mark'
local key, stem, kind = KEYS[4], returns and KEYS[2] or KEYS[5], ARGV[7]
-- What goes with the claimed jobs: keys, the fields of one hash, and what more commands remove.
local bodies, hash, more = {}, nil, {}
local records, members, stays, conflicts = {}, {}, {}, {}
-- A peer may look at all jobs of a claim at once: it gets their ids, each `step` after the one before.
local look

local function stay(id, why)
  stays[#stays + 1] = id
  stays[#stays + 1] = why
end

-- Claims a job, which is in its place as `member`.
local function keep(member, score, id, fields, extra)
  records[#records + 1] = {0, place, score, id, fields, extra}
  members[#members + 1] = member
end

local function busy(id, packed)
  conflicts[#conflicts + 1] = id
  redis.call('RPUSH', KEYS[3], packed)
end

-- Puts a member back into its place.
local function put(place, score, member)
  local at = stem .. (place == 'queue' and '' or SEP .. place)
  if score ~= '' then redis.call('ZADD', at, score, member)
  else redis.call(NEXT == 'head' and 'LPUSH' or 'RPUSH', at, member) end
end

