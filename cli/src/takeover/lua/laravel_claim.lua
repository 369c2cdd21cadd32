-- Keys: the place. Words: list, zset or past. The next job of a list is at its head.
local key, kind, members, found, step = KEYS[4], ARGV[7], {}, nil, 2
if kind == 'list' then
  found, step = redis.call('LRANGE', key, offset, offset + count - 1), 1
elseif kind == 'zset' then
  found = redis.call('ZRANGE', key, offset, offset + count - 1, 'WITHSCORES')
else
  found = redis.call('ZRANGEBYSCORE', key, '-inf', string.format('%.0f', math.floor(now / 1000)), 'WITHSCORES', 'LIMIT', offset, count)
end
for nth = 1, #found, step do
  members[#members + 1] = found[nth]
  keep(step == 1 and '' or found[nth + 1], '', {'payload', found[nth]}, {})
end
local function remove()
  if step == 1 then redis.call('LTRIM', key, #members, -1) else redis.call('ZREM', key, unpack(members)) end
end
