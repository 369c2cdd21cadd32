-- Takes messages out of the queue that have been neither delivered nor changed since they were read. Keys: the queue. Words:
-- for each its id, attempts and payload. Replies with how many stayed.
local stayed = 0
for at = 1, #ARGV, 3 do
  local message = get(ARGV[at])
  local is_same = message.state ~= 'running' and message.attempt == tonumber(ARGV[at + 1]) and message.payload == ARGV[at + 2]
  if not is_same or not purge(ARGV[at], message.state) then stayed = stayed + 1 end
end
return stayed
