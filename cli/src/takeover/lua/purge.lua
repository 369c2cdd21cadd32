-- Returns the fields of a message, or an empty table.
local function get(id)
  local message, reply = {}, redis.call('DQ.GET', KEYS[1], id) or {}
  for field = 1, #reply, 2 do message[reply[field]] = reply[field + 1] end
  return message
end

-- Takes a message out as if it had never been: by PURGE, because CANCEL would leave a record. The words narrow the search.
local function purge(id, state, ...)
  local pattern, cursor = string.gsub(id, '[%*%?%[%]\\]', '\\%0'), '0'
  repeat
    local words = {'DQ.FIND', KEYS[1], state, 'ID', pattern, 'CURSOR', cursor, ...}
    words[#words + 1] = 'DO'
    words[#words + 1] = 'PURGE'
    local reply = redis.call(unpack(words))
    cursor = reply[1]
    if reply[2] > 0 then return true end
  until cursor == '0'
  return false
end

