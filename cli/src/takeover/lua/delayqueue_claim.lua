-- Keys: the place, the counts of retries. Words: list, zset or past, and what begins the keys of the payloads.
local key, counts, kind, payloads = KEYS[4], KEYS[5], ARGV[7], ARGV[8]
local ids, bodies, found, step = {}, {}, nil, 2
if kind == 'list' then
  local tail = redis.call('LRANGE', key, -(offset + count), -(offset + 1))
  found, step = {}, 1
  for nth = #tail, 1, -1 do found[#found + 1] = tail[nth] end
elseif kind == 'zset' then
  found = redis.call('ZRANGE', key, offset, offset + count - 1, 'WITHSCORES')
else
  found = redis.call('ZRANGEBYSCORE', key, '-inf', string.format('%.0f', math.floor(now / 1000)), 'WITHSCORES', 'LIMIT', offset, count)
end
for nth = 1, #found, step do
  local id = found[nth]
  local body, left = redis.call('GET', payloads .. id), redis.call('HGET', counts, id)
  if not body then stay(id, 'NO BODY: its payload has expired')
  elseif left == '0' and place == 'unack' then stay(id, 'given up by the library')
  elseif not left and (place == 'unack' or place == 'retry') then stay(id, 'INTERCEPTED')
  else
    local life = redis.call('PTTL', payloads .. id)
    ids[#ids + 1] = id
    bodies[#bodies + 1] = payloads .. id
    keep(step == 1 and '' or found[nth + 1], id, {'payload', body, 'retries', left or ''},
      {{'life', payloads .. id, life < 0 and '' or string.format('%.0f', now + life)}})
  end
end
local function remove()
  if kind ~= 'list' then redis.call('ZREM', key, unpack(ids))
  elseif offset == 0 and #stays == 0 then redis.call('LTRIM', key, 0, -(#ids + 1))
  else for _, id in ipairs(ids) do redis.call('LREM', key, -1, id) end end
  redis.call('HDEL', counts, unpack(ids))
  redis.call('DEL', unpack(bodies))
end
