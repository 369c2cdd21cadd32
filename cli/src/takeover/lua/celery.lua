-- A message is whole in its list. One that a worker has is named by its tag, and taken as the next worker would take it.
local function claim(body)
  if kind ~= 'lost' then return keep(body, '', '', {'body', body}, {}) end
  local tag, index = body, key .. '_index'
  local held, since = redis.call('HGET', key, tag), redis.call('ZSCORE', index, tag)
  if held and since and tonumber(since) * 1000 <= tonumber(ARGV[8]) and redis.call('EXISTS', key .. '_mutex') == 0 then
    keep(tag, since, tag, {'body', held}, {{'unacked', key}})
    more[#more + 1] = {'HDEL', key, tag}
    more[#more + 1] = {'ZREM', index, tag}
  end
end

local function back(place, score, tag, fields, extra)
  if score == '' then return put(place, score, fields[2]) end
  redis.call('HSET', extra[1][2], tag, fields[2])
  redis.call('ZADD', extra[1][2] .. '_index', score, tag)
end
