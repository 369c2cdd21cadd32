-- Takes messages out of the queue that nobody has got, to be put back. Keys: the queue, the list of those on their way.
-- Words: for each its place in the undo and its id, how many commands follow its going, and these as in the sending.
-- Replies with the places of those that went.
local gone, at = {}, 1
while at <= #ARGV do
  local nth, id, commands = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  at = at + 3
  local message = get(id)
  local waits = message.attempt == 0 and (message.state == 'delayed' or message.state == 'ready' or message.state == 'blocked')
  local died = message.state == 'dead' and message.attempt == 1 and message.reason == 'rejected' and string.sub(message.group or '', 1, 6) == ':dead:'
  -- The last one goes first, so it is found from the end.
  local time = waits and message['due-at'] or message['finished-at']
  local went = (waits or died) and purge(id, message.state, 'SINCE', time, 'UNTIL', time + 1, 'REV')
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
