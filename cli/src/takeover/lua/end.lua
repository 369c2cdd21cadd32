
if returns then
  for at = 3, #ARGV do
    local record = cmsgpack.unpack(ARGV[at])
    back(record[2], record[3], record[4], record[5], record[6], ARGV[at])
  end
  if mode == 'trim' then redis.call('LTRIM', KEYS[1], 0, -(ARGV[1] + 1))
  else redis.call('SET', KEYS[1], ARGV[1]) end
  return conflicts
end

local taking, offset, count = mode == 'take', tonumber(ARGV[3]), tonumber(ARGV[4])
if taking and redis.call('GET', KEYS[3]) ~= ARGV[1] then return redis.error_reply('BUSY the lease of the import has another holder') end
if kind == 'list' and NEXT == 'head' then
  local head = redis.call('LRANGE', key, offset, offset + count - 1)
  if look then look(head, 1) end
  for _, id in ipairs(head) do claim(id, '') end
elseif kind == 'list' then
  local tail = redis.call('LRANGE', key, -(offset + count), -(offset + 1))
  if look then look(tail, 1) end
  for nth = #tail, 1, -1 do claim(tail[nth], '') end
elseif kind == 'lost' then
  for nth = 9, offset == 0 and #ARGV or 0 do claim(ARGV[nth], '') end
else
  local found = kind == 'zset' and redis.call('ZRANGE', key, offset, offset + count - 1, 'WITHSCORES')
    or redis.call('ZRANGEBYSCORE', key, '-inf', string.format('%.0f', math.floor(now / 1000)), 'WITHSCORES', 'LIMIT', offset, count)
  if look then look(found, 2) end
  for nth = 1, #found, 2 do claim(found[nth], found[nth + 1]) end
end

-- Everything that can fail has been read by now. The copies are made before anything goes.
local last = taking and #records > 0 and redis.call('HINCRBY', KEYS[2], 'seq', #records)
local packed = {}
for nth, record in ipairs(records) do
  record[1] = last and last - #records + nth or 0
  packed[nth] = cmsgpack.pack(record)
end
if not last then return {packed, stays} end
redis.call('RPUSH', KEYS[1], unpack(packed))
redis.call('PEXPIRE', KEYS[3], 10000)
if kind == 'zset' and #stays == 0 then redis.call('ZREMRANGEBYRANK', key, offset, offset + #members - 1)
elseif kind == 'zset' or kind == 'late' then redis.call('ZREM', key, unpack(members))
elseif kind == 'list' and offset == 0 and #stays == 0 then
  if NEXT == 'head' then redis.call('LTRIM', key, #members, -1) else redis.call('LTRIM', key, 0, -(#members + 1)) end
elseif kind == 'list' then
  for _, member in ipairs(members) do redis.call('LREM', key, NEXT == 'head' and 1 or -1, member) end
end
if #bodies > 0 then redis.call('DEL', unpack(bodies)) end
if hash then redis.call('HDEL', hash, unpack(members)) end
for _, command in ipairs(more) do redis.call(unpack(command)) end
return {packed, stays}
