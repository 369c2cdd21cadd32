-- Puts jobs back: the body before the id.
local stem = KEYS[2] .. ':'
local paused = redis.call('HEXISTS', stem .. 'meta', 'paused') == 1
local version = redis.call('HGET', stem .. 'meta', 'version')
local fifth = version and string.match(version, '^bullmq:[45]')
for at = 3, #ARGV do
  local record = cmsgpack.unpack(ARGV[at])
  local place, score, id, fields, extra = record[2], record[3], record[4], record[5], record[6]
  local name = stem .. id
  if redis.call('EXISTS', name) == 1 then
    busy(id, ARGV[at])
  else
    redis.call('HSET', name, unpack(fields))
    for _, part in ipairs(extra) do
      if part[1] == 'logs' then redis.call('RPUSH', name .. ':logs', unpack(part, 2)) end
      if part[1] == 'de' then
        redis.call('SET', stem .. 'de:' .. part[2], id)
        if part[3] ~= '' then redis.call('PEXPIREAT', stem .. 'de:' .. part[2], part[3]) end
      end
      if part[1] == 'repeat' then
        if #part > 3 then redis.call('HSET', stem .. 'repeat:' .. part[2], unpack(part, 4)) end
        redis.call('ZADD', stem .. 'repeat', part[3], part[2])
      end
    end
    if place == 'wait' or place == 'paused' then
      local keeps_apart = paused and (not version or fifth)
      redis.call('RPUSH', stem .. (keeps_apart and 'paused' or 'wait'), id)
      if version and not paused then redis.call('ZADD', stem .. 'marker', 0, '0') end
    else
      redis.call('ZADD', stem .. place, score, id)
      if place == 'prioritized' and version and not paused then redis.call('ZADD', stem .. 'marker', 0, '0') end
      if place == 'delayed' and version then
        local first = redis.call('ZRANGE', stem .. 'delayed', 0, 0, 'WITHSCORES')
        redis.call('ZADD', stem .. 'marker', tonumber(first[2]) / 4096, '1')
      end
    end
  end
end
return done()
