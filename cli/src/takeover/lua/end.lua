-- Ends each script that claims jobs: everything that can fail has been read by now. The copies are made before anything goes.
if taking and #records > 0 then
  local last = redis.call('HINCRBY', KEYS[2], 'seq', #records)
  local packed = {}
  for nth, record in ipairs(records) do
    record[1] = last - #records + nth
    packed[nth] = cmsgpack.pack(record)
  end
  redis.call('RPUSH', KEYS[1], unpack(packed))
  redis.call('PEXPIRE', KEYS[3], 10000)
  remove()
  return {#records, stays}
end
local packed = {}
for nth, record in ipairs(records) do packed[nth] = cmsgpack.pack(record) end
return {packed, stays}
