-- The place of those that are lost is the heartbeats of the workers: one is taken from a worker that is silent.
local function lost(id)
  local begin = string.sub(key, 1, -#'__heartbeats__' - 1)
  local queue = string.sub(stem, #begin + 1)
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', ARGV[8])) do
    for _, name in ipairs({queue, queue .. '.DQ'}) do
      local acks, messages = begin .. '__acks__.' .. worker .. '.' .. name, begin .. name .. '.msgs'
      local body = redis.call('SISMEMBER', acks, id) == 1 and redis.call('HGET', messages, id)
      if body then
        keep(id, '', id, {'message', body}, {{'acks', acks, messages}})
        more[#more + 1] = {'SREM', acks, id}
        more[#more + 1] = {'HDEL', messages, id}
        return
      end
    end
  end
end

local function claim(id, score)
  if kind == 'lost' then return lost(id) end
  hash = key .. '.msgs'
  local body = redis.call('HGET', hash, id)
  if body then keep(id, score, id, {'message', body}, {}) else stay(id, 'NO BODY') end
end

-- The body comes before the id.
local function back(place, score, id, fields, extra, packed)
  local acks = extra[1]
  local messages = acks and acks[3] or stem .. (place == 'queue' and '' or SEP .. place) .. '.msgs'
  if redis.call('HSETNX', messages, id, fields[2]) == 0 then busy(id, packed)
  elseif acks then redis.call('SADD', acks[2], id)
  else put(place, score, id) end
end
