-- The word is what the keys of the payloads begin with.
local function claim(id, score)
  local body = ARGV[8] .. id
  hash = stem .. ':retry:cnt'
  local payload, left = redis.call('GET', body), redis.call('HGET', hash, id)
  if not payload then stay(id, 'NO BODY: its payload has expired')
  elseif left == '0' and place == 'unack' then stay(id, 'given up by the library')
  elseif not left and (place == 'unack' or place == 'retry') then stay(id, 'INTERCEPTED')
  else
    local life = redis.call('PTTL', body)
    bodies[#bodies + 1] = body
    keep(id, score, id, {'payload', payload, 'retries', left or ''}, {{'life', body, life < 0 and '' or string.format('%.0f', now + life)}})
  end
end

-- The payload comes before the id.
local function back(place, score, id, fields, extra, packed)
  local life = extra[1]
  if redis.call('SETNX', life[2], fields[2]) == 0 then return busy(id, packed) end
  if life[3] ~= '' then redis.call('PEXPIREAT', life[2], life[3]) end
  if fields[4] ~= '' then redis.call('HSET', stem .. ':retry:cnt', id, fields[4]) end
  put(place, score, id)
end
