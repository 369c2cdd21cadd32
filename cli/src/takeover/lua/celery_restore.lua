-- Puts messages back at the tail of their list, whose name has the priority behind it.
for at = 3, #ARGV do
  local record = cmsgpack.unpack(ARGV[at])
  local place = record[2] == 'queue' and '' or record[2]
  redis.call('RPUSH', KEYS[2] .. place, record[5][2])
end
return done()
