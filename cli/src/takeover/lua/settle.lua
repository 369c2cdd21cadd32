-- Takes the head of the claim list away, once it is at the target. Keys: the claim list, the jobs that stay, the lease.
-- Words: the token of the lease, how many go, then those of them that stay.
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return redis.error_reply('BUSY the lease of the import has another holder') end
for at = 3, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[at]) end
redis.call('LTRIM', KEYS[1], ARGV[2], -1)
return redis.call('PEXPIRE', KEYS[3], 10000)
