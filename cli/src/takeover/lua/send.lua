-- Sends claimed jobs, in the order of their numbers, each once. Keys: the queue, the marker with the number of the last one.
-- Words: for each job its number and how many commands it takes, then each command as the number of its words and the words.
-- Replies with the last number, why it went no further, and the numbers of jobs whose id is taken here.
local marker = redis.call('GET', KEYS[2])
if not marker then return redis.error_reply('ENDED the marker of this import is gone from the target') end
local queue, last, refused, taken = KEYS[1], tonumber(marker), '', {}

-- Nothing makes a dead message at once, so it is delivered in a group of its own, and refused for good.
local function dead(words)
  local group, failure = words[3], words[4]
  local sent = redis.pcall('DQ.SEND', queue, words[2], 'GROUP', group, unpack(words, 5))
  if not sent or sent.err then return sent end
  local got = redis.pcall('DQ.FETCH', queue, 'GROUP', group)
  if not got or got.err or #got == 0 then
    redis.call('DQ.PURGE', queue, 'GROUP', group)
    return {err = 'PAUSED or limited: the queue delivers nothing now, and a dead message has to be delivered first'}
  end
  return redis.pcall('DQ.NACK', queue, got[1][2], 'FATAL', 'ERROR', failure)
end

-- A scheduler that is here already has its next job: an old producer has only named it again.
local function scheduler(words)
  if redis.call('HEXISTS', words[2], words[3]) == 1 then return false end
  redis.call('HSET', words[2], words[3], words[4])
  return 1
end

local at = 1
while at <= #ARGV and refused == '' do
  local number, commands = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  at = at + 2
  local fresh, goes = number > last, true
  if not fresh and redis.call('SISMEMBER', KEYS[2] .. ':taken', number) == 1 then taken[#taken + 1] = number end
  if fresh and number ~= last + 1 then refused = 'GAP' end
  for nth = 1, commands do
    local size = tonumber(ARGV[at])
    if fresh and goes and refused == '' then
      local word, reply = ARGV[at + 1]
      if word == 'DEAD' then reply = dead({unpack(ARGV, at + 1, at + size)})
      elseif word == 'SCHEDULER' then reply = scheduler({unpack(ARGV, at + 1, at + size)})
      else reply = redis.pcall(unpack(ARGV, at + 1, at + size)) end
      if type(reply) == 'table' and reply.err then
        refused = reply.err
      elseif not reply and nth == 1 then
        goes = false
        if word ~= 'SCHEDULER' then
          taken[#taken + 1] = number
          redis.call('SADD', KEYS[2] .. ':taken', number)
        end
      end
    end
    at = at + size + 1
  end
  if fresh and refused == '' then last = number end
end
if last ~= tonumber(marker) then redis.call('SET', KEYS[2], string.format('%.0f', last)) end
return {last, refused, taken}
