-- Puts jobs back at the head of their list, or with their time.
for at = 3, #ARGV do
  local record = cmsgpack.unpack(ARGV[at])
  local place, payload = record[2], record[5][2]
  if place == 'queue' then redis.call('LPUSH', KEYS[2], payload)
  else redis.call('ZADD', KEYS[2] .. ':' .. place, record[3], payload) end
end
return done()
