-- Puts messages back: the payload before the id.
for at = 3, #ARGV do
  local record = cmsgpack.unpack(ARGV[at])
  local place, score, id, fields, life = record[2], record[3], record[4], record[5], record[6][1]
  local key = KEYS[2] .. ':' .. place
  if redis.call('SETNX', life[2], fields[2]) == 0 then busy(id, ARGV[at])
  else
    if life[3] ~= '' then redis.call('PEXPIREAT', life[2], life[3]) end
    if fields[4] ~= '' then redis.call('HSET', KEYS[2] .. ':retry:cnt', id, fields[4]) end
    if score == '' then redis.call('RPUSH', key, id) else redis.call('ZADD', key, score, id) end
  end
end
return done()
