-- Begins each script that puts records back. Keys: the list whose end they are, or the key that says what an undo has put
-- back; what the queue's keys begin with; the list of those whose id is in use again. Words: how many of the list go, or the
-- place of the last one in the undo; trim or mark; then the records, the last claimed first.
local conflicts = {}
local function busy(id, packed)
  conflicts[#conflicts + 1] = id
  redis.call('RPUSH', KEYS[3], packed)
end
local function done()
  if ARGV[2] == 'trim' then redis.call('LTRIM', KEYS[1], 0, -(ARGV[1] + 1))
  else redis.call('SET', KEYS[1], ARGV[1]) end
  return conflicts
end
