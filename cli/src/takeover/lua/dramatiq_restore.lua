-- Puts messages back: the body before the id, at the head of its list.
for at = 3, #ARGV do
  local record = cmsgpack.unpack(ARGV[at])
  local key = KEYS[2] .. (record[2] == 'queue' and '' or '.' .. record[2])
  if redis.call('HSETNX', key .. '.msgs', record[4], record[5][2]) == 0 then busy(record[4], ARGV[at])
  elseif record[2] == 'XQ' then redis.call('ZADD', key, record[3], record[4])
  else redis.call('LPUSH', key, record[4]) end
end
return done()
