-- Keys: the place. Words: list or zset. The next message of a list is at its head.
local key, is_list = KEYS[4], ARGV[7] == 'list'
local bodies, ids, step = key .. '.msgs', {}, is_list and 1 or 2
local found = is_list and redis.call('LRANGE', key, offset, offset + count - 1)
  or redis.call('ZRANGE', key, offset, offset + count - 1, 'WITHSCORES')
for nth = 1, #found, step do
  local id = found[nth]
  local body = redis.call('HGET', bodies, id)
  if not body then stay(id, 'NO BODY')
  else
    ids[#ids + 1] = id
    keep(is_list and '' or found[nth + 1], id, {'message', body}, {})
  end
end
local function remove()
  if not is_list then redis.call('ZREM', key, unpack(ids))
  elseif offset == 0 and #stays == 0 then redis.call('LTRIM', key, #ids, -1)
  else for _, id in ipairs(ids) do redis.call('LREM', key, 1, id) end end
  redis.call('HDEL', bodies, unpack(ids))
end
