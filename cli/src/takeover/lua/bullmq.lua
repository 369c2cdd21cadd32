-- BullMQ, and Bull before it, whose waiting jobs with a priority are in the set `priority`, too.
local colon, known = stem .. SEP, {}
for field in string.gmatch('name data opts timestamp delay priority progress attemptsMade atm ats stc stalledCounter processedOn ' ..
  'finishedOn retriedOn failedReason stacktrace returnvalue rjk deid pb nrjid', '%S+') do known[field] = true end
local priority = kind == 'list' and redis.call('EXISTS', colon .. 'priority') == 1 and colon .. 'priority'

-- Returns the key of the repeatable job whose next job this is, as Bull keeps it.
local function repeat_of(opts)
  local is_json, read = pcall(cjson.decode, opts)
  local rule = is_json and type(read) == 'table' and read['repeat']
  return type(rule) == 'table' and rule.key
end

-- Returns whether a worker has lost this job.
local function is_lost(id, name)
  for _, active in ipairs(redis.call('LRANGE', key, 0, -1)) do
    if active == id then return redis.call('EXISTS', name .. ':lock') == 0 end
  end
end

-- Most jobs have nothing beside them: one question for all of a claim says so.
local sides, plain = {':dependencies', ':processed', ':failed', ':unsuccessful', ':logs'}, false
look = function(ids, step)
  local keys = {}
  for nth = 1, #ids, step do
    for _, side in ipairs(sides) do keys[#keys + 1] = colon .. ids[nth] .. side end
  end
  plain = #keys > 0 and redis.call('EXISTS', unpack(keys)) == 0
end

local function claim(id, score)
  -- The markers of version 4 only wake workers.
  if kind == 'list' and string.sub(id, 1, 2) == '0:' then return stay('', '') end
  local name, extra, rjk, deid, opts = colon .. id, {}, nil, nil, nil
  if kind == 'lost' and not is_lost(id, name) then return end
  local fields = redis.call('HGETALL', name)
  if #fields == 0 then return stay(id, 'NO BODY') end
  for at = 1, #fields, 2 do
    local field = fields[at]
    if field == 'parentKey' or field == 'parent' then return stay(id, 'FLOW') end
    if not known[field] then return stay(id, 'UNKNOWN field ' .. field) end
    if field == 'rjk' then rjk = fields[at + 1] elseif field == 'deid' then deid = fields[at + 1]
    elseif field == 'opts' then opts = fields[at + 1] end
  end
  if not plain then
    for nth = 1, 4 do
      if redis.call('EXISTS', name .. sides[nth]) == 1 then return stay(id, 'FLOW') end
    end
    local logs = redis.call('LRANGE', name .. ':logs', 0, 5000)
    if #logs > 5000 then return stay(id, 'UNKNOWN logs of more than 5,000 lines') end
    if #logs > 0 then
      extra[1] = {'logs', unpack(logs)}
      bodies[#bodies + 1] = name .. ':logs'
    end
  end
  if deid then
    local one = colon .. 'de:' .. deid
    if redis.call('GET', one) == id then
      local left = redis.call('PTTL', one)
      extra[#extra + 1] = {'de', deid, left < 0 and '' or string.format('%.0f', now + left)}
      bodies[#bodies + 1] = one
    end
  end
  if not rjk and opts and string.sub(id, 1, 7) == 'repeat:' then rjk = repeat_of(opts) end
  local at = rjk and redis.call('ZSCORE', colon .. 'repeat', rjk)
  if at and string.match(id, ':(%d+)$') == at then
    local definition = redis.call('HGETALL', colon .. 'repeat:' .. rjk)
    extra[#extra + 1] = {'repeat', rjk, at, unpack(definition)}
    bodies[#bodies + 1] = colon .. 'repeat:' .. rjk
    more[#more + 1] = {'ZREM', colon .. 'repeat', rjk}
  end
  local rank = priority and redis.call('ZSCORE', priority, id)
  if rank then
    extra[#extra + 1] = {'priority', rank}
    more[#more + 1] = {'ZREM', priority, id}
  end
  if kind == 'lost' then more[#more + 1] = {'LREM', key, -1, id} end
  bodies[#bodies + 1] = name
  keep(id, score, id, fields, extra)
end

-- The body comes before the id.
local function back(place, score, id, fields, extra, packed)
  local name = colon .. id
  if redis.call('EXISTS', name) == 1 then return busy(id, packed) end
  local version = redis.call('HGET', colon .. 'meta', 'version')
  local paused = redis.call('HEXISTS', colon .. 'meta', 'paused') == 1 or redis.call('EXISTS', colon .. 'meta-paused') == 1
  redis.call('HSET', name, unpack(fields))
  for _, part in ipairs(extra) do
    if part[1] == 'logs' then redis.call('RPUSH', name .. ':logs', unpack(part, 2)) end
    if part[1] == 'de' then
      redis.call('SET', colon .. 'de:' .. part[2], id)
      if part[3] ~= '' then redis.call('PEXPIREAT', colon .. 'de:' .. part[2], part[3]) end
    end
    if part[1] == 'repeat' then
      if #part > 3 then redis.call('HSET', colon .. 'repeat:' .. part[2], unpack(part, 4)) end
      redis.call('ZADD', colon .. 'repeat', part[3], part[2])
    end
    if part[1] == 'priority' then redis.call('ZADD', colon .. 'priority', part[2], id) end
  end
  if place == 'wait' or place == 'paused' then
    place = paused and (not version or string.match(version, '^bullmq:[45]')) and 'paused' or 'wait'
  end
  put(place, score, id)
  if not version or paused then return end
  if place == 'delayed' then
    local first = redis.call('ZRANGE', colon .. 'delayed', 0, 0, 'WITHSCORES')
    redis.call('ZADD', colon .. 'marker', tonumber(first[2]) / 4096, '1')
  elseif place == 'wait' or place == 'prioritized' then redis.call('ZADD', colon .. 'marker', 0, '0') end
end
