-- Keys: the list, what the queue's keys begin with. The next message is at the tail.
local key = KEYS[4]
local tail = redis.call('LRANGE', key, -(offset + count), -(offset + 1))
for nth = #tail, 1, -1 do keep('', '', {'message', tail[nth]}, {}) end
local function remove() redis.call('LTRIM', key, 0, -(#records + 1)) end
