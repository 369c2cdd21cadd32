-- Takes messages out of the queue that nobody has got, to be put back. Keys: the queue, the list of those on their way.
-- Words: for each its place in the undo and its id, how many commands follow its going, and these as in the sending.
-- Replies with the places of those that went.
local gone, at = {}, 1
while at <= #ARGV do
  local nth, id, commands = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  at = at + 3
  local message = {}
  local reply = redis.call('DQ.GET', KEYS[1], id) or {}
  for field = 1, #reply, 2 do message[reply[field]] = reply[field + 1] end
  local waits = message.attempt == 0 and (message.state == 'delayed' or message.state == 'ready' or message.state == 'blocked')
  local died = message.state == 'dead' and message.attempt == 1 and message.reason == 'rejected' and string.sub(message.group or '', 1, 6) == ':dead:'
  local went = false
  if waits or died then
    local pattern = string.gsub(id, '[%*%?%[%]\\]', '\\%0')
    local words = {'DQ.FIND', KEYS[1], message.state, 'ID', pattern}
    if waits then
      words[6], words[7], words[8], words[9] = 'SINCE', message['due-at'], 'UNTIL', message['due-at'] + 1
    end
    words[#words + 1] = 'DO'
    words[#words + 1] = 'PURGE'
    redis.call(unpack(words))
    went = not redis.call('DQ.GET', KEYS[1], id)
  end
  for _ = 1, commands do
    local size = tonumber(ARGV[at])
    if went then redis.call(unpack(ARGV, at + 1, at + size)) end
    at = at + size + 1
  end
  if went then
    redis.call('RPUSH', KEYS[2], nth)
    gone[#gone + 1] = nth
  end
end
return gone
