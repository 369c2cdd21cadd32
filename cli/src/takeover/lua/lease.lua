-- Takes or renews the lease of an import. Keys: the lease. Words: the token, whose first part names the ledger.
-- Replies with the token of another holder, or with an empty text.
local held = redis.call('GET', KEYS[1])
if held and string.match(held, '^[^ ]+') ~= string.match(ARGV[1], '^[^ ]+') then return held end
redis.call('SET', KEYS[1], ARGV[1], 'PX', 10000)
return ''
