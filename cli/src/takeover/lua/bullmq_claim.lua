-- Keys: the place, what the queue's keys begin with. Words: list or zset.
local key, stem, is_list = KEYS[4], KEYS[5] .. ':', ARGV[7] == 'list'
local known = {}
for field in string.gmatch('name data opts timestamp delay priority progress attemptsMade atm ats stc processedOn finishedOn ' ..
  'failedReason stacktrace returnvalue rjk deid pb nrjid', '%S+') do known[field] = true end
local ids, bodies, sides, dull = {}, {}, {}, 0

local function job(id, score)
  local name, extra, rjk, deid = stem .. id, {}, nil, nil
  local fields = redis.call('HGETALL', name)
  if #fields == 0 then return stay(id, 'NO BODY') end
  for at = 1, #fields, 2 do
    local field = fields[at]
    if field == 'parentKey' or field == 'parent' then return stay(id, 'FLOW') end
    if not known[field] then return stay(id, 'UNKNOWN field ' .. field) end
    if field == 'rjk' then rjk = fields[at + 1] elseif field == 'deid' then deid = fields[at + 1] end
  end
  if redis.call('EXISTS', name .. ':dependencies', name .. ':processed', name .. ':failed', name .. ':unsuccessful') > 0 then
    return stay(id, 'FLOW')
  end
  local logs = redis.call('LRANGE', name .. ':logs', 0, -1)
  if #logs > 0 then
    extra[1] = {'logs', unpack(logs, 1, math.min(#logs, 5000))}
    bodies[#bodies + 1] = name .. ':logs'
  end
  if deid then
    local one = stem .. 'de:' .. deid
    if redis.call('GET', one) == id then
      local left = redis.call('PTTL', one)
      extra[#extra + 1] = {'de', deid, left < 0 and '' or string.format('%.0f', now + left)}
      bodies[#bodies + 1] = one
    end
  end
  local at = rjk and redis.call('ZSCORE', stem .. 'repeat', rjk)
  if at and string.match(id, ':(%d+)$') == at then
    local definition = redis.call('HGETALL', stem .. 'repeat:' .. rjk)
    extra[#extra + 1] = {'repeat', rjk, at, unpack(definition)}
    bodies[#bodies + 1] = stem .. 'repeat:' .. rjk
    sides[#sides + 1] = rjk
  end
  ids[#ids + 1] = id
  bodies[#bodies + 1] = name
  keep(score, id, fields, extra)
end

if is_list then
  local tail = redis.call('LRANGE', key, -(offset + count), -(offset + 1))
  for nth = #tail, 1, -1 do
    -- The markers of version 4, which only wake workers.
    if string.sub(tail[nth], 1, 2) == '0:' then dull = dull + 1 else job(tail[nth], '') end
  end
else
  local found = redis.call('ZRANGE', key, offset, offset + count - 1, 'WITHSCORES')
  for nth = 1, #found, 2 do job(found[nth], found[nth + 1]) end
end
for _ = 1, dull do stay('', '') end

local function remove()
  if not is_list then redis.call('ZREM', key, unpack(ids))
  elseif offset == 0 and #stays == 0 then redis.call('LTRIM', key, 0, -(#ids + 1))
  else for _, id in ipairs(ids) do redis.call('LREM', key, -1, id) end end
  redis.call('DEL', unpack(bodies))
  if #sides > 0 then redis.call('ZREM', stem .. 'repeat', unpack(sides)) end
end
